"""Public helpers at the import paths of the original.

Scripts import `hyper_param_flags` and `tf_util` from here. Nothing inside MoXing does.
"""
