"""TensorFlow graphs from the inside: everything that needs private TensorFlow while a model is built and run.

`surgery` cuts a subgraph out and rebuilds it in a function, `iterators` finds the datasets behind an `input_fn`,
`towers` builds a model several times on shared variables, `run_graph` and `v1_behavior` set TensorFlow's global
switches. `data_seeds`, `dataset_properties`, `half_precision`, `keras_layers`, `sparse_adam`, `variable_fetches` and
`variables` are small tools for one purpose each. Other packages import from these modules; nothing in here imports from
`user`, `era` or `files`.
"""
