"""The parts of `tf.contrib` that are tables: what is served, and what does the work of the rest today."""

from __future__ import annotations

from moxing.tf1.contrib import _lazy
from moxing.tf1.contrib._refusal import Part

_V1 = "tensorflow.compat.v1"
_MORE = "moxing.tf1.contrib.more"
_ADDONS = "it moved to the package tensorflow-addons, which is no longer maintained and needs an older TensorFlow"
_PROBABILITY = "use the package tensorflow-probability"
_FORESTS = "use the package tensorflow-decision-forests"
_STORES = "use the package tensorflow-io"

_DISTRIBUTIONS = _lazy.names(
    (
        f"{_V1}:distributions",
        "Bernoulli Beta Categorical Dirichlet DirichletMultinomial Distribution Exponential FULLY_REPARAMETERIZED "
        "Gamma Laplace Multinomial NOT_REPARAMETERIZED Normal RegisterKL ReparameterizationType StudentT Uniform "
        "kl_divergence",
    ),
    (f"{_V1}:distributions", "kl=kl_divergence"),
)

#: By the name below `tf.contrib`. Names that are not in a table refuse when they are called.
PARTS: dict[str, Part] = {
    "all_reduce": Part("use tf.distribute, or --variable_update of mox.run"),
    "autograph": Part(
        "use tf.autograph and tf.function",
        _lazy.names((f"{_V1}:autograph", "to_code to_graph"), (f"{_V1}:autograph.experimental", "do_not_convert")),
    ),
    "batching": Part(
        "use tf.nondifferentiable_batch_function",
        _lazy.names((f"{_V1}:", "batch_function=nondifferentiable_batch_function")),
    ),
    "bayesflow": Part(_PROBABILITY),
    "bigtable": Part(_STORES),
    "boosted_trees": Part(_FORESTS),
    "checkpoint": Part(
        "use tf.train.Checkpoint",
        _lazy.names(
            (f"{_V1}:train", "CheckpointManager"),
            ("tensorflow.python.trackable.autotrackable:", "Checkpointable=AutoTrackable"),
            ("tensorflow.python.trackable.data_structures:", "List Mapping NoDependency"),
        ),
    ),
    "compiler": Part(
        "use tf.function(jit_compile=True)",
        _lazy.names((f"{_V1}:xla.experimental", "compile experimental_jit_scope=jit_scope")),
        "xla jit python",
    ),
    "constrained_optimization": Part("use the package tensorflow-constrained-optimization"),
    "copy_graph": Part("use tf.import_graph_def(graph.as_graph_def())"),
    "cudnn_rnn": Part(
        "use tf.contrib.cudnn_rnn.CudnnLSTM or CudnnGRU, which run on every device here",
        _lazy.names((f"{_MORE}.cudnn_rnn:", "CudnnCompatibleGRUCell CudnnCompatibleLSTMCell CudnnGRU CudnnLSTM")),
        "python layers ops cudnn_rnn cudnn_rnn_ops",
    ),
    "deprecated": Part(
        "use tf.summary",
        _lazy.names(
            (
                f"{_V1}:summary",
                "audio_summary=audio histogram_summary=histogram image_summary=image merge_all_summaries=merge_all "
                "merge_summary=merge scalar_summary=scalar",
            )
        ),
    ),
    "distributions": Part(_PROBABILITY, _DISTRIBUTIONS, "python ops bernoulli categorical normal uniform"),
    "eager": Part(
        "eager execution is part of TensorFlow 2",
        _lazy.names(
            (
                f"{_V1}:",
                "GradientTape custom_gradient enable_eager_execution executing_eagerly py_func=py_function",
            ),
            (f"{_V1}:train", "Checkpoint"),
            (f"{_V1}:config", "list_devices=list_logical_devices"),
            (
                "tensorflow.python.eager.backprop:",
                "implicit_gradients=implicit_grad implicit_value_and_gradients=implicit_val_and_grad "
                "gradients_function value_and_gradients_function=val_and_grad_function make_vjp",
            ),
            ("tensorflow.python.ops.resource_variable_ops:", "Variable=ResourceVariable"),
            (
                f"{_MORE}.eager:",
                "DEVICE_PLACEMENT_EXPLICIT DEVICE_PLACEMENT_SILENT DEVICE_PLACEMENT_WARN Iterator Saver",
            ),
            (f"{_MORE}.eager:", "defun in_eager_mode in_graph_mode metrics num_gpus"),
        ),
        "python tfe",
    ),
    "factorization": Part(
        "use tf.estimator.experimental.KMeans, or scikit-learn",
        _lazy.names(
            (
                "tensorflow.python.ops.clustering_ops:",
                "COSINE_DISTANCE KMEANS_PLUS_PLUS_INIT KMeans RANDOM_INIT SQUARED_EUCLIDEAN_DISTANCE",
            ),
            ("moxing.tensorflow.estimator:experimental", "KMeansClustering=KMeans"),
        ),
        "python ops clustering_ops kmeans",
    ),
    "feature_column": Part(
        "use tf.feature_column",
        _lazy.names(
            (
                "tensorflow:feature_column",
                "sequence_categorical_column_with_hash_bucket sequence_categorical_column_with_identity "
                "sequence_categorical_column_with_vocabulary_file sequence_categorical_column_with_vocabulary_list "
                "sequence_numeric_column",
            )
        ),
    ),
    "ffmpeg": Part("use tf.audio.decode_wav, or the package tensorflow-io for other formats"),
    "gan": Part("use the package tensorflow-gan (TF-GAN)"),
    "graph_editor": Part("use tf.graph_util and tf.import_graph_def"),
    "hadoop": Part(_STORES),
    "hooks": Part("use mox.ProfilerHook", _lazy.names((f"{_V1}:train", "ProfilerHook"))),
    "input_pipeline": Part("use tf.data"),
    "integrate": Part("use tfp.math.ode of the package tensorflow-probability, or scipy.integrate.odeint"),
    "kafka": Part(_STORES),
    "kernel_methods": Part("use tf.keras.layers.experimental.RandomFourierFeatures"),
    "kinesis": Part(_STORES),
    "labeled_tensor": Part("use tf.Tensor, and the package xarray for labels"),
    "linalg": Part("use tf.linalg"),
    "linear_optimizer": Part("use tf.estimator.LinearClassifier with tf.train.FtrlOptimizer"),
    "lite": Part("use tf.lite", _lazy.names(("tensorflow:lite", "TFLiteConverter Interpreter OpsSet"))),
    "memory_stats": Part("use tf.config.experimental.get_memory_info"),
    "mixed_precision": Part("use tf.train.experimental.enable_mixed_precision_graph_rewrite, or --use_fp16 of mox.run"),
    "model_pruning": Part("use the package tensorflow-model-optimization"),
    "nccl": Part("mox.run combines gradients by itself; elsewhere use tf.distribute"),
    "nn": Part(
        "use tf.nn",
        _lazy.names(
            (
                f"{_MORE}.nn:",
                "alpha_dropout deprecated_flipped_sigmoid_cross_entropy_with_logits "
                "deprecated_flipped_softmax_cross_entropy_with_logits "
                "deprecated_flipped_sparse_softmax_cross_entropy_with_logits nth_element scaled_softplus",
            )
        ),
        "python ops",
    ),
    "optimizer_v2": Part(
        "use the optimizers of tf.train",
        _lazy.names(
            (
                f"{_V1}:train",
                "AdadeltaOptimizer AdagradOptimizer AdamOptimizer GradientDescentOptimizer MomentumOptimizer "
                "RMSPropOptimizer",
            )
        ),
    ),
    "periodic_resample": Part("use tf.image.resize, or tf.reshape and tf.transpose"),
    "proto": Part("use tf.io.decode_proto", _lazy.names((f"{_V1}:io", "decode_proto encode_proto"))),
    "pi_examples": Part("they are in the repository tensorflow/tensorflow of 1.15"),
    "recurrent": Part("use tf.nn.dynamic_rnn"),
    "reduce_slice_ops": Part("use tf.math.segment_sum and similar functions"),
    "remote_fused_graph": Part("use tf.lite"),
    "resampler": Part(f"{_ADDONS} (tfa.image.resampler)"),
    "rpc": Part("use the package grpcio"),
    "saved_model": Part(
        "use tf.saved_model",
        _lazy.names(
            (f"{_V1}:saved_model", "build_tensor_info get_tensor_from_tensor_info signature_def_utils simple_save")
        ),
    ),
    "session_bundle": Part("use tf.saved_model.simple_save or tf.saved_model.Builder"),
    "signal": Part(
        "use tf.signal",
        _lazy.names(
            (
                f"{_V1}:signal",
                "frame hamming_window hann_window inverse_stft inverse_stft_window_fn linear_to_mel_weight_matrix "
                "mfccs_from_log_mel_spectrograms overlap_and_add stft",
            )
        ),
    ),
    "solvers": Part("use tf.linalg.experimental.conjugate_gradient, or scipy.optimize"),
    "sparsemax": Part("use tf.nn.softmax", _lazy.names((f"{_MORE}.nn:", "sparsemax sparsemax_loss"))),
    "specs": Part("use tf.layers"),
    "staging": Part(
        "use Dataset.prefetch", _lazy.names(("tensorflow.python.ops.data_flow_ops:", "MapStagingArea StagingArea"))
    ),
    "stateless": Part(
        "use tf.random.stateless_uniform and similar functions",
        _lazy.names(
            (
                f"{_V1}:random",
                "stateless_categorical stateless_multinomial stateless_random_normal=stateless_normal "
                "stateless_random_uniform=stateless_uniform stateless_truncated_normal",
            )
        ),
    ),
    "summary": Part(
        "use tf.compat.v2.summary",
        _lazy.names(
            (
                "tensorflow.python.ops.summary_ops_v2:",
                "SummaryWriter all_summary_ops=all_v2_summary_ops always_record_summaries audio create_file_writer "
                "create_summary_file_writer flush generic graph=graph_v1 histogram image initialize "
                "never_record_summaries record_summaries_every_n_global_steps scalar should_record_summaries",
            )
        ),
    ),
    "tensor_forest": Part(_FORESTS),
    "tensorboard": Part(
        "use the package tensorboard",
        _lazy.names((f"{_MORE}.projector:", "EmbeddingInfo ProjectorConfig SpriteMetadata visualize_embeddings")),
        "plugins projector",
    ),
    "tensorrt": Part("use tf.experimental.tensorrt"),
    "text": Part("use the package tensorflow-text"),
    "tfprof": Part(
        "use tf.profiler",
        _lazy.names(
            (
                f"{_MORE}.tfprof:",
                "FLOAT_OPS_OPTIONS PRINT_ALL_TIMING_MEMORY TRAINABLE_VARS_PARAMS_STAT_OPTIONS print_model_analysis",
            ),
            (f"{_V1}:profiler", "write_op_log"),
        ),
        "model_analyzer tfprof_logger python tools",
    ),
    "timeseries": Part("use the package tensorflow-probability (tfp.sts)"),
    "verbs": Part("use tf.distribute"),
}
