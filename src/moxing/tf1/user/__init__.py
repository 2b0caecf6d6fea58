"""What a script of TensorFlow 1 sees, and the launcher that runs it.

`launcher` runs a script or a module. `user_modules` recognizes the modules of the user and serves their import
statements: `tensorflow` comes from `facade`, other modules from `moxing.tf1.era.views`. `flags`, `app` and
`keras_modules` are parts of the facade, `command_line` hides MoXing's flags from the parsers of the script, and
`child_processes` starts the children of a script the same way. The `moxing` command imports `launcher`.
"""
