"""Everything that knows how TensorFlow 1 differs from today's TensorFlow.

This is the only package that touches private TensorFlow or patches anything; the rest of MoXing asks here.
Importing it imports nothing else, so that the launcher can set the environment before TensorFlow starts.
"""
