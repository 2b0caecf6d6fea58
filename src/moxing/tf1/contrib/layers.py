"""`tf.contrib.layers`: the layers, initializers, regularizers and summaries of tf-slim, and feature columns."""

from __future__ import annotations

from typing import Any

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

_NAMES = _lazy.names(
    (
        "tf_slim.layers:",
        "GDN OPTIMIZER_CLS_NAMES OPTIMIZER_SUMMARIES RevBlock adaptive_clipping_fn apply_regularization avg_pool2d "
        "avg_pool3d batch_norm bias_add bucketize conv1d conv2d conv2d_in_plane conv2d_transpose conv3d "
        "conv3d_transpose convolution convolution1d convolution2d convolution2d_in_plane convolution2d_transpose "
        "convolution3d convolution3d_transpose dense_to_sparse dropout elu flatten fully_connected gdn group_norm "
        "images_to_sequence initializers instance_norm l1_l2_regularizer l1_regularizer l2_regularizer layer_norm "
        "legacy_fully_connected legacy_linear legacy_relu linear max_pool2d max_pool3d maxout one_hot_encoding "
        "optimize_loss optimizers pool recompute_grad regularizers relu relu6 repeat rev_block scale_gradient "
        "separable_conv2d separable_convolution2d sequence_to_images softmax spatial_softmax stack sum_regularizer "
        "summaries summarize_activation summarize_activations summarize_biases summarize_collection "
        "summarize_tensor summarize_tensors summarize_variables summarize_weights unit_norm utils "
        "variance_scaling_initializer xavier_initializer xavier_initializer_conv2d",
    ),
    ("tensorflow.compat.v1:nn", "safe_embedding_lookup_sparse"),
    (
        "moxing.tf1.contrib._feature_columns:",
        "bucketized_column crossed_column embedding_column input_from_feature_columns one_hot_column "
        "real_valued_column sparse_column_with_hash_bucket sparse_column_with_integerized_feature "
        "sparse_column_with_keys sparse_column_with_vocabulary_file",
    ),
)
__all__ = [*_NAMES, "embed_sequence"]
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)


def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: bool | None = None,
) -> Any:
    """Looks up an embedding for every id in a batch of sequences.

    Args:
      ids: int32 or int64 of shape [batch, length].
      vocab_size: number of ids; may be None with `reuse`.
      embed_dim: size of an embedding; may be None with `reuse`.
      unique: ignored; the result is the same, and TensorFlow merges repeated rows itself.
      initializer: initializer of the variable `embeddings`.
      regularizer: regularizer of the variable `embeddings`.
      trainable: whether to train `embeddings`.
      scope: name of the variable scope. Default: `EmbedSequence`.
      reuse: whether to use the existing `embeddings` of the scope.

    Returns:
      float32 of shape [batch, length, embed_dim].
    """
    import tensorflow as tf

    from moxing.tf1.contrib import _slim_repairs

    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError(f"vocab_size and embed_dim are required without reuse, got {vocab_size} and {embed_dim}")
    del unique
    v1 = tf.compat.v1
    with v1.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        shape = [vocab_size, embed_dim] if vocab_size and embed_dim else None
        embeddings = _slim_repairs.load().model_variable(
            "embeddings", shape=shape, initializer=initializer, regularizer=regularizer, trainable=trainable
        )
        return v1.nn.embedding_lookup(embeddings, ids)
