"""Public helpers, at the import paths of the original."""
