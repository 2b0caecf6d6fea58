"""Checkpoints: writing them, choosing the one to start from, restoring variables from it.

A checkpoint is TensorFlow V2 files and a small JSON with the position in the data. It becomes valid in
`files.mark_valid`, which `keeper.Keeper.save` calls last: the `checkpoint` file then names it. A checkpoint that this
file does not name does not exist for a run; if the file is missing or damaged, every checkpoint with an index file
counts. Modules: `files.py` (the JSON, `position.py`, and the `checkpoint` file), `keeper.py` (saves, removes old ones),
`choose.py` (which one to start from, is it undamaged), `restore.py` (which variables come from it, `cast.py`: in
another type), `restart.py` (`--restart`), `labels.py` (class names). Import what you need from these modules.
"""
