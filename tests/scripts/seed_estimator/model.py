# -*- coding: utf-8 -*-
"""A classifier on slim's ResNet-50.

Published: `__init__` and `predict`. The other methods were only described.
"""

import tensorflow as tf

from tensorflow.contrib.slim import nets

import preprocessing

slim = tf.contrib.slim


class Model(object):
    
    def __init__(self, is_training,
                 num_classes=2,
                 fixed_resize_side=256,
                 default_image_size=224):
        # model 模型初始化，传入的参数类型
        self._num_classes = num_classes
        self._is_training = is_training
        self._fixed_resize_side = fixed_resize_side
        self._default_image_size = default_image_size

    @property
    def num_classes(self):
        return self._num_classes

    def preprocess(self, inputs):
        """Crops a batch of images and subtracts the mean of ImageNet."""
        return preprocessing.preprocess_images(
            inputs, self._default_image_size, is_training=self._is_training)

    def predict(self, preprocessed_inputs):
        """Predict prediction tensors from inputs tensor.
        输入 [batch_size,height, width, num_channels]  a batch of images. 
        利用slim模块加载预训练模型，然后返回softmax之前的参数
        输出 结果值{'logits': logits}
        """

        # resnet_v1_50 函数返回的形状为 [None, 1, 1, num]
        with slim.arg_scope(nets.resnet_v1.resnet_arg_scope()):
            net, endpoints = nets.resnet_v1.resnet_v1_50(
                preprocessed_inputs, num_classes=None,
                is_training=self._is_training)
        #conv5 = endpoints['resnet/conv5']
        # 为了输入到全连接层，需要用函数 tf.squeeze 去掉形状为 1 的第 1，2 个索引维度。
        net = tf.squeeze(net, axis=[1, 2])
        # 将resnet的最后一层输出进行处理，变成二分类
        logits = slim.fully_connected(net, num_outputs=self.num_classes,
                                      activation_fn=None, 
                                      scope='Predict/logits')
        return {'logits': logits}

    def postprocess(self, prediction_dict):
        """Probabilities and classes of the logits."""
        logits = prediction_dict['logits']
        return {'logits': logits,
                'probabilities': tf.nn.softmax(logits),
                'classes': tf.argmax(logits, axis=1)}

    def loss(self, prediction_dict, groundtruth_lists):
        """Cross entropy."""
        loss = tf.losses.sparse_softmax_cross_entropy(
            labels=groundtruth_lists, logits=prediction_dict['logits'])
        return {'loss': loss}

    def accuracy(self, postprocessed_dict, groundtruth_lists):
        """The part of a batch that is classified correctly."""
        right = tf.equal(postprocessed_dict['classes'], groundtruth_lists)
        return tf.reduce_mean(tf.cast(right, tf.float32))
