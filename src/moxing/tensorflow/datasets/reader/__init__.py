"""Readers of raw files: the values of `reader_class`."""
