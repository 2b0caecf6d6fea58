"""`mox.file.shift`: makes Python's own file functions accept URLs.

`shift` replaces and restores the functions, `targets` lists what they call for a URL, and `fsspec_bridge` serves
libraries that open URLs through fsspec, such as pandas.
"""
