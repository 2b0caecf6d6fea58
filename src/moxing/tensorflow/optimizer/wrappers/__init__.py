"""Optimizers around another optimizer, one file each.

Every wrapper is a subclass of `wrapper.OptimizerWrapper`; `factory.WRAPPERS` has their names. `compression` is the
arithmetic of `dgc`, without TensorFlow. Scripts import from `moxing.tensorflow.optimizer`.
"""
