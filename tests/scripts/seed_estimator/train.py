# -*- coding: utf-8 -*-
"""Trains the classifier of model.py with tf.estimator.

    python train.py --train_record_path train.record --val_record_path val.record \\
        --model_dir model --checkpoint_path resnet_v1_50.ckpt

Published: `create_model_fn`, `create_input_fn`, `get_decoder`, `read_dataset` and the lines of `main` from `estimator`
on. The rest was only mentioned.
"""

import functools

import tensorflow as tf

import exporter
import model

slim = tf.contrib.slim
flags = tf.app.flags

flags.DEFINE_string('train_record_path', None, 'Path to training tfrecord file.')
flags.DEFINE_string('val_record_path', None, 'Path to validation tfrecord file.')
flags.DEFINE_string('checkpoint_path', None, 'Path to a pretrained model.')
flags.DEFINE_string('model_dir', None, 'Directory of the checkpoints.')
flags.DEFINE_float('keep_checkpoint_every_n_hours', 0.2, 'Save a checkpoint that is kept every n hours.')
flags.DEFINE_float('learning_rate', 1e-4, 'Learning rate.')
flags.DEFINE_float('learning_rate_decay_factor', 0.9, 'Learning rate decay factor.')
flags.DEFINE_float('decay_steps', 1000, 'Number of steps per decay.')
flags.DEFINE_integer('num_classes', 2, 'Number of classes.')
flags.DEFINE_integer('batch_size', 48, 'Batch size.')
flags.DEFINE_integer('num_steps', 50000, 'Number of steps.')
flags.DEFINE_integer('input_size', 256, 'Height and width of the images that the model gets.')
flags.DEFINE_string('checkpoint_exclude_scopes', None, 'Scopes of variables that are not loaded, separated by commas.')
flags.DEFINE_string('scopes_to_freeze', None, 'Scopes of variables that are not trained, separated by commas.')

FLAGS = flags.FLAGS


def scopes_of(text):
    return [scope.strip() for scope in (text or '').split(',') if scope.strip()]


def in_scopes(variable, scopes):
    return any(variable.op.name.startswith(scope) for scope in scopes)


def init_variables_from_checkpoint():
    """Initializes variables from the pretrained model, except those of `checkpoint_exclude_scopes`."""
    excluded = scopes_of(FLAGS.checkpoint_exclude_scopes)
    reader = tf.train.NewCheckpointReader(FLAGS.checkpoint_path)
    available = reader.get_variable_to_shape_map()
    variables = {}
    for variable in slim.get_model_variables():
        name = variable.op.name
        if in_scopes(variable, excluded):
            continue
        if available.get(name) == variable.shape.as_list():
            variables[name] = variable
        else:
            tf.logging.warning('Variable [%s] is not available in checkpoint.', name)
    tf.train.init_from_checkpoint(FLAGS.checkpoint_path, variables)


def get_trainable_variables():
    """Returns the trainable variables, except those of `scopes_to_freeze`."""
    frozen = scopes_of(FLAGS.scopes_to_freeze)
    return [variable for variable in tf.trainable_variables() if not in_scopes(variable, frozen)]


def configure_learning_rate(decay_steps, global_step):
    """Exponential decay in stairs."""
    return tf.train.exponential_decay(FLAGS.learning_rate, global_step, decay_steps,
                                      FLAGS.learning_rate_decay_factor, staircase=True,
                                      name='exponential_decay_learning_rate')


def transform_data(image):
    """Resizes an image to the size that all images of a batch have."""
    image = tf.expand_dims(tf.to_float(image), 0)
    image = tf.image.resize_bilinear(image, [FLAGS.input_size, FLAGS.input_size])
    return tf.squeeze(image, axis=0)


def create_predict_input_fn():
    """Creates the `serving_input_receiver_fn`: it gets one serialized tf.train.Example."""
    def _predict_input_fn():
        example = tf.placeholder(tf.string, shape=[], name='tf_example')
        decoder = get_decoder()
        tensor_dict = dict(zip(decoder.list_items(), decoder.decode(example)))
        image = transform_data(tensor_dict.get('image'))
        return tf.estimator.export.ServingInputReceiver(
            features={'image': tf.expand_dims(image, 0)},
            receiver_tensors={'serialized_example': example})

    return _predict_input_fn


def get_decoder():
    # 设置tfrecord文件的解码器，对事前定义好的图片文件进行解码

    # 根据tf.contrib.slim.tfexample_decoder中的对应进行解码
    keys_to_features = {
        'image/encoded': 
            tf.FixedLenFeature((), tf.string, default_value=''),
        'image/format': 
            tf.FixedLenFeature((), tf.string, default_value='jpeg'),
        'image/class/label': 
            tf.FixedLenFeature([1], tf.int64, default_value=tf.zeros([1], 
                               dtype=tf.int64))}
    #把items（string）映射为ItemHandler实例
    items_to_handlers = {
        'image': slim.tfexample_decoder.Image(image_key='image/encoded',
                                              format_key='image/format',
                                              channels=3),
        'label': slim.tfexample_decoder.Tensor('image/class/label', shape=[])}
    
    decoder = slim.tfexample_decoder.TFExampleDecoder(
        keys_to_features, items_to_handlers)
    return decoder


def read_dataset(file_read_fun, input_files, num_readers=1, shuffle=False,
                 num_epochs=0, read_block_length=32, shuffle_buffer_size=2048):
    """
    利用并行化技术进行图像数据的处理与读入
    tf.data.Dataset.from_tensor_slices() 创建实例
    tf.data.TFRecordDataset(): 用来读取tfrecord文件，dataset中的每一个元素就是一个TFExample
    """
    # Shard, shuffle, and read files
    filenames = tf.gfile.Glob(input_files)
    if num_readers > len(filenames):
        num_readers = len(filenames)
        tf.logging.warning('num_readers has been reduced to %d to match input '
                           'file shards.' % num_readers)
    
    filename_dataset = tf.data.Dataset.from_tensor_slices(filenames)
    if shuffle:
        filename_dataset = filename_dataset.shuffle(100)
    elif num_readers > 1:
        tf.logging.warning('`shuffle` is false, but the input data stream is '
                           'still slightly shuffled since `num_readers` > 1.')
    # 根据epochs 数量进行重复
    filename_dataset = filename_dataset.repeat(num_epochs or None)

    records_dataset = filename_dataset.apply(
        tf.contrib.data.parallel_interleave(
            file_read_fun,
            cycle_length=num_readers,
            block_length=read_block_length,
            sloppy=shuffle))
    
    if shuffle:
        records_dataset = records_dataset.shuffle(shuffle_buffer_size)
    return records_dataset


def create_model_fn(features, labels, mode, params=None):
    """Constructs the classification model.
    
    Modifed from:
        https://github.com/tensorflow/models/blob/master/research/
            object_detection/model_lib.py.
    
    Args:
        features: A 4-D float32 tensor with shape [batch_size, height,
            width, channels] representing a batch of images. (Support dict)
        labels: A 1-D int32 tensor with shape [batch_size] representing
             the labels of each image. (Support dict)
        mode: Mode key for tf.estimator.ModeKeys.
        params: Parameter dictionary passed from the estimator.
        
    Returns:
        An `EstimatorSpec` the encapsulates the model and its serving
        configurations.
    """
    # 定义网络参数
    params = params or {}
    # 定义网络衡量参数
    loss, acc, train_op, export_outputs = None, None, None, None
    # 根据mode传参进行匹配，mode 指定训练模式，可以取 （TRAIN, EVAL, PREDICT）三者之一
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    
    # 根据传入的feature读取图片数据
    cls_model = model.Model(is_training=is_training, 
                            num_classes=FLAGS.num_classes)
    #预处理，获得输出值，获得预测值
    preprocessed_inputs = cls_model.preprocess(features.get('image'))
    prediction_dict = cls_model.predict(preprocessed_inputs)
    postprocessed_dict = cls_model.postprocess(prediction_dict)
    
    # train
    if mode == tf.estimator.ModeKeys.TRAIN:
        #进行对应预训练模型的加载
        if FLAGS.checkpoint_path:
            # checkpoint_exclude_scopes = 'resnet_v1_50/conv1,resnet_v1_50/block1'
            # 指定一些层不加载参数
            init_variables_from_checkpoint()
    
    # not train
    if mode in (tf.estimator.ModeKeys.TRAIN, tf.estimator.ModeKeys.EVAL):
        loss_dict = cls_model.loss(prediction_dict, labels)
        loss = loss_dict['loss']
        classes = postprocessed_dict['classes']
        acc = tf.reduce_mean(tf.cast(tf.equal(classes, labels), 'float'))
        tf.summary.scalar('loss', loss)
        tf.summary.scalar('accuracy', acc)
    
    scaffold = None
    
    # train
    if mode == tf.estimator.ModeKeys.TRAIN:
        # 设定步数，设定学习率等等超参数
        global_step = tf.train.get_or_create_global_step()
        learning_rate = configure_learning_rate(FLAGS.decay_steps,
                                                global_step)
        optimizer = tf.train.MomentumOptimizer(learning_rate=learning_rate,
                                               momentum=0.9)
        # 冻结层设置,指定一些层不训练
        # scopes_to_freeze = 'resnet_v1_50/block1,resnet_v1_50/block2/unit_1'
        vars_to_train = get_trainable_variables()        
        train_op = slim.learning.create_train_op(loss, optimizer,
                                                 variables_to_train=vars_to_train,
                                                 summarize_gradients=True)
        # 多少时间保存一次模型
        keep_checkpoint_every_n_hours = FLAGS.keep_checkpoint_every_n_hours
        saver = tf.train.Saver(
            sharded=True,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            save_relative_paths=True)
        tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
        scaffold = tf.train.Scaffold(saver=saver)
        
    eval_metric_ops = None
    if mode == tf.estimator.ModeKeys.EVAL:
        accuracy = tf.metrics.accuracy(labels=labels, predictions=classes)
        eval_metric_ops = {'Accuracy': accuracy}
    
    if mode == tf.estimator.ModeKeys.PREDICT:
        export_output = exporter._add_output_tensor_nodes(postprocessed_dict)
        export_outputs = {
            tf.saved_model.signature_constants.PREDICT_METHOD_NAME:
                tf.estimator.export.PredictOutput(export_output)}
    
    # 返回这个实例化对象
    return tf.estimator.EstimatorSpec(mode=mode,
                                      predictions=prediction_dict,
                                      loss=loss,
                                      train_op=train_op,
                                      eval_metric_ops=eval_metric_ops,
                                      export_outputs=export_outputs,
                                      scaffold=scaffold)


def create_input_fn(record_paths, batch_size=64,
                    num_epochs=0, num_parallel_batches=8, 
                    num_prefetch_batches=2):
    """Create a train or eval `input` function for `Estimator`.
    
    Args:
        record_paths: A list contains the paths of tfrecords.
    
    Returns:
        `input_fn` for `Estimator` in TRAIN/EVAL mode.
    """
    def _input_fn():
        # 先实现decoder实例
        decoder = get_decoder()
        
        def decode(value):
            keys = decoder.list_items()
            tensors = decoder.decode(value)
            # zip 将键值和value反过来
            tensor_dict = dict(zip(keys, tensors))
            image = tensor_dict.get('image')
            # 读图片进行处理
            image = transform_data(image)
            features_dict = {'image': image}
            return features_dict, tensor_dict.get('label')
        
        dataset = read_dataset(
            functools.partial(tf.data.TFRecordDataset, 
                              buffer_size=8 * 1000 * 1000),
            input_files=record_paths,
            num_epochs=num_epochs)
        
        if batch_size:
            num_parallel_calles = batch_size * num_parallel_batches
        else:
            num_parallel_calles = num_parallel_batches
        dataset = dataset.map(decode, num_parallel_calls=num_parallel_calles)

        if batch_size:
            dataset = dataset.apply(
                tf.contrib.data.batch_and_drop_remainder(batch_size))
        dataset = dataset.prefetch(num_prefetch_batches)
        return dataset
    
    return _input_fn


def main(_):
    tf.logging.set_verbosity(tf.logging.INFO)
    estimator = tf.estimator.Estimator(model_fn=create_model_fn, 
                                       model_dir=FLAGS.model_dir)
    train_input_fn = create_input_fn([FLAGS.train_record_path], 
                                     batch_size=FLAGS.batch_size)
    train_spec = tf.estimator.TrainSpec(input_fn=train_input_fn,
                                        max_steps=FLAGS.num_steps)
    eval_input_fn = create_input_fn([FLAGS.val_record_path], 
                                    batch_size=FLAGS.batch_size,
                                    num_epochs=1)
    predict_input_fn = create_predict_input_fn()
    eval_exporter = tf.estimator.FinalExporter(
        name='servo', serving_input_receiver_fn=predict_input_fn)
    eval_spec = tf.estimator.EvalSpec(input_fn=eval_input_fn, steps=None,
                                      exporters=eval_exporter)
    
    tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)


if __name__ == '__main__':
    tf.app.run()
