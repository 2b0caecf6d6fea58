"""`tensorflow.examples` for user code: the tutorial modules that published scripts import.

TensorFlow no longer has the package. User modules import it as `tensorflow.examples`; nothing else imports it.
"""
