"""`moxing checkpoint`: shows, compares and converts checkpoints.

`commands` defines the parsers and imports the module of a sub-command when it runs: `show`, `diff` or `convert`. All
three read checkpoints with `reading`. Only `moxing.cli.main` imports from here.
"""
