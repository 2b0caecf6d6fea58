"""Datasets of image files in folders, with a folder per class or with a label file per image.

`raw_metadata` lists a folder (`folders`), orders its classes (`class_order`, `labels` for `labels.txt`) and finds the
label files (`label_files`). `raw_dataset` makes a dataset of it: `image_files` are its numbered samples. Import the
metadata and dataset classes from `moxing.tensorflow.datasets`.
"""
