"""Datasets of TFRecord files.

`tfrecord_metadata` finds files (`record_files`) and indexes their records (`record_index`, kept by `index_cache`);
`record_reader` reads records by number, `record_objects` does both on an object store. `record_samples` are the
numbered samples of a dataset; `tfrecord_common`, `tfrecord_image` and `progressive` are the datasets. Import them from
`moxing.tensorflow.datasets`.
"""
