"""The version, in a module that imports nothing, so that the build can read it."""

__version__ = "0.1.0"
