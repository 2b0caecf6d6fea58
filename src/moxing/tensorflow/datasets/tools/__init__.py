"""Tools for datasets on disk, which the commands of `moxing data` call.

`split` copies an image folder into training and evaluation folders, `conversion` writes it as TFRecord files,
`inspection` checks a dataset, `contact_sheet` draws its samples as training sees them. Import
`split_image_classification_dataset`, `convert_image_folder`, `inspect_dataset` and `make_contact_sheet` from these
modules. The tools use the datasets; the datasets do not use the tools.
"""
