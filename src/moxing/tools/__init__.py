"""Tools for people who change the code.

`python -m moxing.tools.walk` counts the files that a training step passes through. Nothing here is imported by the
library.
"""
