"""Helpers that any test may import: starting the launcher, warm processes, waiting for conditions.

A helper that only one directory needs stays beside the tests of that directory.
"""
