"""The scripts here run under `moxing run` only: pytest must not import them to look for doctests."""

collect_ignore_glob = ["*.py", "*/*.py"]
