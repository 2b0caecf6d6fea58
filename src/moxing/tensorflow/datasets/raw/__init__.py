"""Data sets of plain image files: what is in a folder, its labels, and its splits."""
