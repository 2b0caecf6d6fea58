"""Datasets on an object store: listing, reading ahead and caching of objects.

`objects` lists and reads objects, `look_ahead` starts requests before their results are needed, in threads of its own,
`data_cache` keeps objects on the local disk. `raw.image_files` and `tfrecord.record_objects` use them; users do not
import from here.
"""
