"""Private modules and names of TensorFlow 1.0 to 1.15 that moved or changed since, and what serves them today.

Data only: `facade` shows the names to user modules. Libraries keep TensorFlow's own modules.
"""

from __future__ import annotations

from moxing.tf1.contrib import _lazy

_DEFINITIONS = "moxing.tf1.user.names.private_definitions:"
_CELLS = "tensorflow.compat.v1:nn.rnn_cell"
_TPU = "tensorflow_estimator.python.estimator.tpu"

#: Modules under their old names. The longest prefix counts; the rest of a name is appended.
MODULES: dict[str, str] = {
    "tensorflow.pywrap_tensorflow": "tensorflow.python.pywrap_tensorflow",
    "tensorflow.python.distribute.distribution_strategy_context": "tensorflow.python.distribute.distribute_lib",
    "tensorflow.python.framework.summary_op_util": "tensorflow.python.ops.summary_op_util",
    "tensorflow.python.keras.engine.network": "tf_keras.src.engine.functional",
    "tensorflow.python.lib.core.error_codes_pb2": "tensorflow.core.protobuf.error_codes_pb2",
    "tensorflow.python.ops.seq2seq": "moxing.tf1.contrib.legacy_seq2seq",
    "tensorflow.python.ops.spectral_ops": "tensorflow.python.ops.signal.fft_ops",
    "tensorflow.python.ops.summary_ops": "tensorflow.python.summary.summary",
    "tensorflow.python.platform.default._flags": "moxing.tf1.user.flags",
    "tensorflow.python.platform.default._app": "moxing.tf1.user.app",
    "tensorflow.python.platform.default._gfile": "moxing.tf1.files.gfile",
    "tensorflow.python.platform.default._logging": "tensorflow.python.platform.tf_logging",
    "tensorflow.python.platform.logging": "tensorflow.python.platform.tf_logging",
    "tensorflow.python.summary.text_summary": "tensorflow.python.summary.summary",
    "tensorflow.python.tpu.tpu_config": f"{_TPU}.tpu_config",
    "tensorflow.python.tpu.tpu_context": f"{_TPU}.tpu_context",
    "tensorflow.python.tpu.tpu_estimator": f"{_TPU}.tpu_estimator",
    "tensorflow.python.training.checkpoint_management": "tensorflow.python.checkpoint.checkpoint_management",
    "tensorflow.python.training.checkpointable": "tensorflow.python.trackable",
    "tensorflow.python.training.checkpointable.tracking": "tensorflow.python.trackable.autotrackable",
    "tensorflow.python.training.checkpointable.util": "tensorflow.python.checkpoint.checkpoint",
    "tensorflow.python.training.device_util": "tensorflow.python.distribute.device_util",
    "tensorflow.python.training.distribute": "tensorflow.python.distribute.distribute_lib",
    "tensorflow.python.training.distribution_strategy_context": "tensorflow.python.distribute.distribute_lib",
    "tensorflow.python.training.gen_training_ops": "tensorflow.python.ops.gen_training_ops",
    "tensorflow.python.training.learning_rate_decay_v2": "tensorflow.python.training.learning_rate_decay",
    "tensorflow.python.training.saveable": "tensorflow.python.training.saving.saveable_object",
    "tensorflow.python.training.tracking": "tensorflow.python.trackable",
    "tensorflow.python.training.tracking.tracking": "tensorflow.python.trackable.autotrackable",
    "tensorflow.python.training.tracking.util": "tensorflow.python.checkpoint.checkpoint",
    "tensorflow.python.training.training_ops": "tensorflow.python.ops.gen_training_ops",
    "tensorflow.python.util.py_checkpoint_reader": "tensorflow.python.training.py_checkpoint_reader",
}

#: Modules that are not in any package today, with what to do instead. They are refused when they are imported.
GONE: dict[str, str] = {
    "tensorflow.models": "TensorFlow has not contained example models since 0.12. They are in the repository "
    "tensorflow/models: put the files that the program needs next to it. What was tensorflow.models.rnn.rnn_cell and "
    "seq2seq is tf.nn.rnn_cell and tf.contrib.legacy_seq2seq",
    "tensorflow.tensorboard": "use the package tensorboard",
    "tensorflow.python.summary.event_accumulator": "use tensorboard.backend.event_processing.event_accumulator of the "
    "package tensorboard, or tf.train.summary_iterator",
    "tensorflow.python.summary.event_multiplexer": "use tensorboard.backend.event_processing.event_multiplexer of the "
    "package tensorboard, or tf.train.summary_iterator",
    "tensorflow.python.profiler.profile_context": "use tf.profiler.profile, or mox.ProfilerHook in a run",
    "tensorflow.tools.graph_transforms": "TensorFlow 2 has no graph transforms. Use "
    "tf.graph_util.convert_variables_to_constants and tensorflow.python.tools.optimize_for_inference_lib",
    "tensorflow.tools.tfprof": "use tf.profiler.profile",
    **{
        f"tensorflow.examples.{name}": "it is a program of the repository tensorflow/tensorflow (version 1.15), not a "
        "part of the package: copy the file next to the program"
        for name in (
            "how_tos",
            "image_retraining",
            "label_image",
            "learn",
            "speech_commands",
            "tutorials.deepdream",
            "tutorials.estimators",
            "tutorials.layers",
            "tutorials.mnist.fully_connected_feed",
            "tutorials.mnist.mnist_softmax",
            "tutorials.mnist.mnist_with_summaries",
            "tutorials.word2vec",
        )
    },
}

_CELL_NAMES = (
    "BasicLSTMCell BasicRNNCell DeviceWrapper DropoutWrapper GRUCell LSTMCell LSTMStateTuple MultiRNNCell RNNCell "
    "ResidualWrapper _RNNCell=RNNCell"
)
# The classes of tf.nn.rnn_cell, so that isinstance works between the two paths.
_RNN_CELL = _lazy.names(
    (_CELLS, _CELL_NAMES),
    (
        "tf_keras.src.layers.rnn.legacy_cells:",
        "LayerRNNCell _LayerRNNCell=LayerRNNCell _hasattr _concat _zero_state_tensors _BIAS_VARIABLE_NAME "
        "_WEIGHTS_VARIABLE_NAME",
    ),
    ("tensorflow.python.ops.rnn_cell_impl:", "_like_rnncell=assert_like_rnncell"),
    (_DEFINITIONS, "_linear _Linear"),
    ("moxing.tf1.contrib.rnn:", "EmbeddingWrapper InputProjectionWrapper OutputProjectionWrapper"),
)
_CONVERT_VARIABLES = _lazy.names(
    ("tensorflow.python.framework.convert_to_constants:", "convert_variables_to_constants"),
)
_READER = _lazy.names(("tensorflow.python.training.py_checkpoint_reader:", "NewCheckpointReader CheckpointReader"))
_TRACKABLE = _lazy.names(
    (
        "tensorflow.python.trackable.base:",
        "CheckpointableBase=Trackable Checkpointable=Trackable CheckpointableReference=TrackableReference "
        "no_automatic_dependency_tracking",
    ),
    ("tensorflow.python.trackable.data_structures:", "NoDependency"),
)

#: Names by the module that user code finds them in. They come before the names of the module itself.
NAMES: dict[str, dict[str, str]] = {
    "tensorflow.pywrap_tensorflow": _READER,
    "tensorflow.python.pywrap_tensorflow": _READER,
    "tensorflow.python.util.nest": _lazy.names(
        ("tensorflow.python.util.nest:", "is_sequence=is_nested is_sequence_or_composite=is_nested_or_composite")
    ),
    "tensorflow.python.data.util.nest": _lazy.names(("tensorflow.python.data.util.nest:", "is_sequence=is_nested")),
    "tensorflow.python.util.tf_export": _lazy.names(
        ("tensorflow_estimator.python.estimator.estimator_export:", "estimator_export")
    ),
    "tensorflow.python.framework.ops": _lazy.names(
        # As `tf.Tensor` of user modules: the class of the tensors in a graph.
        ("moxing.tf1.user.behavior:", "Tensor"),
        ("tensorflow.python.framework.tensor:", "_TensorLike=Tensor"),
        (
            "tensorflow.python.framework.indexed_slices:",
            "IndexedSlices IndexedSlicesValue convert_to_tensor_or_indexed_slices "
            "convert_n_to_tensor_or_indexed_slices internal_convert_to_tensor_or_indexed_slices",
        ),
        ("tensorflow.python.framework.tensor_conversion_registry:", "register_tensor_conversion_function"),
        ("tensorflow.python.framework.sparse_tensor:", "SparseTensor SparseTensorValue"),
        ("tensorflow.python.framework.tensor_shape:", "Dimension"),
        (_DEFINITIONS, "RegisterShape"),
    ),
    "tensorflow.python.framework.tensor_shape": _lazy.names((_DEFINITIONS, "scalar vector matrix")),
    "tensorflow.python.framework.common_shapes": _lazy.names(
        (_DEFINITIONS, "unknown_shape unchanged_shape scalar_shape call_cpp_shape_fn")
    ),
    "tensorflow.python.framework.graph_util": _CONVERT_VARIABLES,
    "tensorflow.python.framework.graph_util_impl": _CONVERT_VARIABLES,
    "tensorflow.python.framework.op_def_registry": _lazy.names((_DEFINITIONS, "get_registered_ops")),
    "tensorflow.python.ops.control_flow_ops": _lazy.names(
        ("tensorflow.compat.v1:", "cond case while_loop switch_case Assert"),
        ("tensorflow.python.framework.smart_cond:", "smart_cond"),
        ("tensorflow.python.ops.control_flow_util:", "IsSwitch"),
    ),
    "tensorflow.python.ops.array_ops": _lazy.names(
        ("tensorflow.compat.v1:", "stack unstack parallel_stack"),
        ("tensorflow.compat.v1:", "pack=stack unpack=unstack"),
    ),
    "tensorflow.python.ops.math_ops": _lazy.names(
        # The forms that also take keep_dims and reduction_indices.
        (
            "tensorflow.compat.v1:",
            "reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_all reduce_any reduce_logsumexp "
            "batch_matmul=matmul confusion_matrix tile mul=multiply sub=subtract neg=negative",
        ),
    ),
    "tensorflow.python.ops.nn": _lazy.names(
        ("tensorflow.compat.v1:nn", "rnn_cell dynamic_rnn bidirectional_dynamic_rnn raw_rnn static_rnn")
    ),
    "tensorflow.python.ops.nn_ops": _lazy.names(
        ("tensorflow.compat.v1:nn", "sigmoid_cross_entropy_with_logits _softmax=softmax")
    ),
    "tensorflow.python.ops.variable_scope": _lazy.names(("tensorflow.compat.v1:", "variable=Variable")),
    "tensorflow.python.ops.variables": _lazy.names(
        ("tensorflow.python.ops.variable_v1:", "VariableV1"),
        ("tensorflow.python.ops.ref_variable:", "RefVariable"),
        ("tensorflow.compat.v1:", "is_variable_initialized"),
    ),
    "tensorflow.python.ops.rnn_cell_impl": _RNN_CELL,
    "tensorflow.python.ops.rnn_cell": _RNN_CELL,
    "tensorflow.python.ops.rnn": _lazy.names(
        (
            "tensorflow.python.ops.rnn:",
            "rnn=static_rnn bidirectional_rnn=static_bidirectional_rnn state_saving_rnn=static_state_saving_rnn",
        )
    ),
    "tensorflow.python.ops.gradients_impl": _lazy.names(
        (
            "tensorflow.python.ops.gradients_util:",
            "AggregationMethod _GradientsHelper _AggregatedGrads _GetGrads _SymGrad _StopOps _PendingCount "
            "_DefaultGradYs _VerifyGeneratedGradients _maybe_colocate_with",
        ),
        ("tensorflow.python.framework.indexed_slices:", "_IndexedSlicesToTensor=_indexed_slices_to_tensor"),
    ),
    "tensorflow.python.ops.functional_ops": _lazy.names(("tensorflow.compat.v1:", "map_fn")),
    "tensorflow.python.ops.random_ops": _lazy.names(("tensorflow.compat.v1:", "random_crop")),
    "tensorflow.python.ops.sparse_ops": _lazy.names(("tensorflow.compat.v1:", "sparse_placeholder sparse_mask")),
    "tensorflow.python.ops.losses.losses_impl": _lazy.names((_DEFINITIONS, "_safe_div")),
    "tensorflow.python.ops.metrics_impl": _lazy.names(
        (_DEFINITIONS, "_safe_div _create_local"),
        ("tensorflow.python.ops.metrics_impl:", "_aggregate_across_towers=_aggregate_across_replicas"),
    ),
    "tensorflow.python.ops.spectral_ops": _lazy.names(("tensorflow.compat.v1:signal", "dct idct")),
    "tensorflow.python.ops.linalg.linalg_impl": _lazy.names(("tensorflow.compat.v1:linalg", "matrix_inverse=inv")),
    "tensorflow.python.summary.text_summary": _lazy.names(("tensorflow.compat.v1:summary", "text_summary=text")),
    "tensorflow.python.training.saver": _lazy.names(
        (
            "tensorflow.python.checkpoint.checkpoint_management:",
            "_prefix_to_checkpoint_path _GetCheckpointFilename CheckpointManager",
        )
    ),
    "tensorflow.python.training.evaluation": _lazy.names(("tensorflow.compat.v1:train", "checkpoints_iterator")),
    "tensorflow.python.training.distribute": _lazy.names(
        (
            "tensorflow.compat.v1:distribute",
            "get_tower_context=get_replica_context get_distribution_strategy=get_strategy",
        )
    ),
    "tensorflow.python.training.checkpointable.base": _TRACKABLE,
    "tensorflow.python.training.checkpointable.tracking": _lazy.names(
        ("tensorflow.python.trackable.autotrackable:", "Checkpointable=AutoTrackable AutoCheckpointable=AutoTrackable")
    ),
    "tensorflow.python.training.checkpointable.util": _lazy.names(
        ("tensorflow.python.checkpoint.checkpoint:", "CheckpointableSaver=TrackableSaver")
    ),
    "tensorflow.python.platform.tf_logging": _lazy.names(
        ("tensorflow.python.platform.tf_logging:", "_get_logger=get_logger")
    ),
    "tensorflow.python.platform.build_info": _lazy.names(
        (_DEFINITIONS, "is_cuda_build is_rocm_build cuda_version_number cudnn_version_number")
    ),
    "tensorflow.python.saved_model.loader_impl": _lazy.names(
        ("tensorflow.python.saved_model.loader_impl:", "_parse_saved_model=parse_saved_model")
    ),
    "tensorflow.python.eager.context": _lazy.names(
        (_DEFINITIONS, "in_graph_mode"), ("tensorflow.python.eager.context:", "get_default_context=context")
    ),
    "tensorflow.python.eager.function": _lazy.names((_DEFINITIONS, "defun")),
    "tensorflow.python.eager.tape": _lazy.names(("tensorflow.python.eager.record:", "record_operation stop_recording")),
    "tensorflow.python.data.ops.dataset_ops": _lazy.names(("tensorflow.compat.v1:data", "Options")),
    "tensorflow.python.data.ops.iterator_ops": _lazy.names(
        ("tensorflow.python.data.ops.iterator_ops:", "EagerIterator=OwnedIterator IteratorV2=OwnedIterator")
    ),
    "tensorflow.python.feature_column.feature_column": _lazy.names(
        (
            "tensorflow.compat.v1:feature_column",
            "bucketized_column categorical_column_with_hash_bucket categorical_column_with_identity "
            "categorical_column_with_vocabulary_file categorical_column_with_vocabulary_list crossed_column "
            "embedding_column indicator_column input_layer linear_model make_parse_example_spec numeric_column "
            "shared_embedding_columns weighted_categorical_column",
        )
    ),
    "tensorflow.python.layers.base": _lazy.names(("tensorflow.compat.v1:", "_Layer=layers.Layer")),
    "tensorflow.python.keras.engine.network": _lazy.names(("tf_keras.src.engine.functional:", "Network=Functional")),
    # Their operations had a leading underscore until 1.6.
    **{
        f"tensorflow.python.ops.gen_{name}_ops": {}
        for name in (
            "array",
            "candidate_sampling",
            "control_flow",
            "data_flow",
            "image",
            "io",
            "linalg",
            "logging",
            "math",
            "nn",
            "parsing",
            "random",
            "resource_variable",
            "script",
            "sparse",
            "state",
            "string",
        )
    },
}


def location(module: str, name: str) -> str | None:
    """Returns where a name of a module is today, or None if the table does not list it.

    Example:
      >>> location('tensorflow.python.util.nest', 'is_sequence')
      'tensorflow.python.util.nest:is_nested'
      >>> location('tensorflow.python.ops.gen_nn_ops', '_relu_grad')
      'tensorflow.python.ops.gen_nn_ops:relu_grad'
      >>> location('tensorflow.python.util.nest', 'flatten') is None
      True
    """
    table = NAMES.get(module)
    if table is None:
        return None
    if name not in table and ".gen_" in module and name[:1] == "_" and name[1:2].isalpha():
        return f"{module}:{name[1:]}"
    return table.get(name)


def gone(name: str) -> str | None:
    """Returns what to do instead of a module that exists no longer, or None if it is not one of those.

    Example:
      >>> gone('tensorflow.models.rnn.ptb')[:42]
      'TensorFlow has not contained example model'
    """
    while name:
        if name in GONE:
            return GONE[name]
        name = name.rpartition(".")[0]
    return None
