"""Data sets in TFRecord files."""
