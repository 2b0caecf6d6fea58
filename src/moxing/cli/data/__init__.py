"""The command `moxing data`: split, convert and inspect datasets of images.

`commands` adds the sub-commands to the parser of `moxing`; each is one module with `add_command` and `run`. The work is
done by `moxing.tensorflow.datasets.tools`, which is imported only when a command runs, since it imports TensorFlow.
"""
