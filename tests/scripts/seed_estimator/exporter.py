# -*- coding: utf-8 -*-
"""Names of the outputs of an exported model. Not published."""

import tensorflow as tf


def _add_output_tensor_nodes(postprocessed_tensors,
                             output_collection_name='inference_op'):
    """Gives the outputs fixed names in the graph.

    Args:
        postprocessed_tensors: A dict with 'logits', 'probabilities' and
            'classes'.
        output_collection_name: The collection that they are added to.

    Returns:
        A dict of the named tensors, with the same keys.
    """
    outputs = {}
    for key in ('logits', 'probabilities', 'classes'):
        outputs[key] = tf.identity(postprocessed_tensors[key], name=key)
        tf.add_to_collection(output_collection_name, outputs[key])
    return outputs
