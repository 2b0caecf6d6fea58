"""`moxing check`: what of a TensorFlow 1 program runs here, read from its source without executing it.

`sources` finds and parses the files, `names` lists what they import, use and call, `modules` and `symbols` judge it,
and `checker` puts the findings together, which `text`, `html` and `findings` print. Verdicts come from
`moxing.tf1.user.resolver`, which asks the facade itself.
"""
