"""The model: a network of MoXing's model zoo, from photos to classes."""

import moxing.tensorflow as mox
import tensorflow.compat.v1 as tf

import data


class Model:
    """A classifier.

    Args:
      name: the network; `moxing zoo` lists all.
      num_classes: the number of classes.
      image_size: height and width of its images; None: the size that the network was published with.
      weight_decay: the factor of the L2 loss of the weights.
      keep_batch_norm: train with the averages of batch normalisation as they are, and without dropout. For a training
        from a checkpoint that is too short for new averages.
    """

    def __init__(self, name, num_classes, image_size=None, weight_decay=4e-5, keep_batch_norm=False):
        try:
            meta = mox.get_model_meta(name)
        except ValueError as error:
            raise ValueError(f"--model_name={name}: {str(error).partition(': ')[2]}") from None
        self.name = name
        self.num_classes = num_classes
        self.image_size = image_size or meta.default_image_size
        #: Searched for in the names of the variables that depend on the number of classes.
        self.logits_pattern = meta.default_logits_pattern
        self._weight_decay = weight_decay
        self._keep_batch_norm = keep_batch_norm

    def preprocess(self, encoded):
        """Returns the images of encoded photos [batch], as validation has them: uint8 [batch, size, size, 3]."""
        return tf.map_fn(lambda one: data.centre_image(data.decode(one), self.image_size), encoded, dtype=tf.uint8)

    def predict(self, images, training):
        """Returns the logits [batch, num_classes] of images. The network scales the pixels itself."""
        mode = mox.ModeKeys.TRAIN if training and not self._keep_batch_norm else mox.ModeKeys.EVAL
        network = mox.get_model_fn(self.name, mode, self.num_classes, weight_decay=self._weight_decay)
        logits, _ = network(images)
        return logits

    def postprocess(self, logits):
        """Returns the number of the most probable class and the probabilities of all."""
        return {"class": tf.argmax(logits, axis=1), "probabilities": tf.nn.softmax(logits)}

    def loss(self, logits, labels):
        """Returns the cross entropy plus the L2 loss of the weights."""
        regularization = mox.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        return tf.add_n([tf.losses.sparse_softmax_cross_entropy(labels, logits), *regularization])

    def accuracy(self, logits, labels):
        """Returns the share of the batch that is classified correctly."""
        return tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, axis=1), labels), tf.float32))

    def variables(self):
        """Returns the variables of the network: shapes by name, and the names of those that can be trained.

        Raises:
          ValueError: the images are too small for the network.
        """
        with tf.Graph().as_default():
            try:
                self.predict(tf.zeros([2, self.image_size, self.image_size, 3], tf.uint8), training=True)
            except ValueError as error:
                raise ValueError(f"--image_size={self.image_size}: {error}") from None
            shapes = {variable.op.name: variable.shape.as_list() for variable in tf.global_variables()}
            return shapes, [variable.op.name for variable in tf.trainable_variables()]
