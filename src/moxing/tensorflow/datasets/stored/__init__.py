"""Data sets on object stores: listing, requests ahead of their use, the local cache, files of records."""
