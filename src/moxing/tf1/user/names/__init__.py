"""Names of TensorFlow 1 that user modules get: those that were dropped, renamed or behave differently today.

`facade` puts them in place. `private_paths` is a table of private modules and names that moved, `private_definitions`
has those that exist nowhere, `before_1_0` and `losses_before_1_0` those of TensorFlow 0.x. `control_flow`,
`input_producers`, `op_libraries`, `parsing` and `variable_values` replace functions whose behavior changed.
"""
