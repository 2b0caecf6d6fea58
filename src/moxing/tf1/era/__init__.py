"""Names of 2018 that Python, NumPy and pandas have dropped since, for user modules only.

`views` decides what a user module sees when it imports a library module: the module itself, or a `ModuleView` of it
that has the old names too. `old_stdlib`, `old_numpy` and `old_pandas` hold these names, `python2` the builtins of
Python 2 and the advice for its syntax. Nothing in here imports from `user`, which calls `views.view` for every import
statement of a user module.
"""
