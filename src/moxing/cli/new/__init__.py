"""`moxing new`: writes a small project to start from.

`commands` defines the parser and prints, `project` writes. `templates/<kind>/common` and `templates/<kind>/<base>` hold
the files of a project: they are programs of their own and data to this package, which never imports them.
"""
