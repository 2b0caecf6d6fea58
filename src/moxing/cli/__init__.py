"""The `moxing` command.

`main` builds the parser; every sub-command has a module or a package with `add_commands`. `command` runs a sub-command
and turns its errors into one line and an exit code, `output` formats what it prints. Importing this package imports no
TensorFlow, so that `--help` and the commands on files start at once. Nothing imports from here.
"""
