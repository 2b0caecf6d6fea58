"""The programs of `moxing demo`: a training script in the style of 2018, and a client of the exported model.

`moxing demo` runs both as programs of their own; they use the public API only, and nothing imports them.
"""
