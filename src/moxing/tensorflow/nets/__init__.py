"""The model zoo: one family of networks per file, written in the vocabulary of `layers`."""

from moxing.tensorflow.nets.nets_factory import ModelMeta, NetworkKeys, get_model_fn, get_model_meta

__all__ = ["ModelMeta", "NetworkKeys", "get_model_fn", "get_model_meta"]
