"""`tf.contrib.framework`: argument scopes, variables by scope and name, checkpoints."""

from __future__ import annotations

from moxing.tf1.contrib import _lazy

__path__: list[str] = []

_NAMES = _lazy.names(
    (
        "tf_slim.ops.arg_scope:",
        "add_arg_scope arg_scope arg_scoped_arguments current_arg_scope has_arg_scope arg_scope_func_key",
    ),
    (
        "tf_slim.ops.variables:",
        "VariableDeviceChooser add_model_variable assert_global_step assert_or_get_global_step "
        "assign_from_checkpoint assign_from_checkpoint_fn assign_from_values assign_from_values_fn "
        "create_global_step filter_variables get_global_step get_local_variables get_model_variables "
        "get_or_create_global_step get_trainable_variables get_unique_variable get_variable_full_name "
        "get_variables get_variables_by_name get_variables_by_suffix get_variables_to_restore global_variable "
        "local_variable model_variable variable",
    ),
    ("tf_slim.ops.framework_ops:", "get_graph_from_inputs get_name_scope"),
    ("tensorflow.compat.v1:train", "init_from_checkpoint list_variables load_checkpoint load_variable"),
    (
        "tensorflow.compat.v1:",
        "CriticalSection argsort sort is_tensor convert_to_tensor_or_sparse_tensor "
        "assert_scalar=debugging.assert_scalar assert_same_float_dtype=debugging.assert_same_float_dtype "
        "is_non_decreasing=debugging.is_non_decreasing is_strictly_increasing=debugging.is_strictly_increasing "
        "is_numeric_tensor=debugging.is_numeric_tensor",
    ),
    ("moxing.tf1.contrib.more.nest:", "nest"),
    ("tensorflow.python.framework.smart_cond:", "smart_cond smart_constant_value"),
    ("tensorflow.python.util.deprecation:", "deprecated deprecated_arg_values deprecated_args"),
)

__all__ = list(_NAMES)
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)
