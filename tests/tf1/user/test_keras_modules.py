"""The modules behind the Keras and tf.layers names of TensorFlow 1."""

from __future__ import annotations

import importlib

import pytest

from moxing.tf1 import environment
from moxing.tf1.user import keras_modules

environment.prepare()


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("tensorflow.python.keras.layers", "Embedding LSTM Dense concatenate Input Bidirectional GRU"),
        ("tensorflow.python.keras.losses", "binary_crossentropy"),
        ("tensorflow.python.keras.models", "Model Sequential model_from_json load_model"),
        ("tensorflow.python.keras.utils", "to_categorical Sequence"),
        ("tensorflow.python.keras.utils.np_utils", "to_categorical"),
        ("tensorflow.python.keras.optimizers", "SGD Adam RMSprop"),
        ("tensorflow.python.keras.callbacks", "EarlyStopping ModelCheckpoint"),
        ("tensorflow.python.keras.applications", "ResNet50 VGG16"),
        ("tensorflow.python.keras.applications.resnet50", "ResNet50 preprocess_input"),
        ("tensorflow.python.keras.datasets", "mnist imdb"),
        ("tensorflow.python.keras.preprocessing.sequence", "pad_sequences"),
        ("tensorflow.python.keras.preprocessing.text", "Tokenizer"),
        ("tensorflow.python.keras.preprocessing.image", "ImageDataGenerator"),
        ("tensorflow.python.keras.backend", "learning_phase set_session placeholder get_session"),
        ("tensorflow.python.keras.engine.topology", "Layer InputSpec Input"),
        ("tensorflow.python.keras.engine.training", "Model"),
        ("tensorflow.python.keras.layers.recurrent", "LSTM RNN"),
        ("tensorflow.python.keras._impl.keras.layers.core", "Dense Lambda"),
        ("keras.layers.core", "Dense Lambda"),
        ("keras.datasets", "mnist"),
        ("tensorflow.keras", "layers models backend"),
        ("tensorflow.keras.layers", "Dense LSTM"),
        ("tensorflow.layers", "dense conv2d batch_normalization Conv2D flatten"),
        ("tensorflow.python.layers.core", "Dense dense Dropout Flatten FullyConnected fully_connected"),
        ("tensorflow.python.layers.convolutional", "Conv2D conv2d Convolution2D conv2d_transpose"),
        ("tensorflow.python.layers.normalization", "BatchNormalization batch_normalization BatchNorm"),
        ("tensorflow.python.layers.pooling", "MaxPooling2D max_pooling2d"),
        ("tensorflow.python.layers.base", "Layer InputSpec"),
        ("tensorflow.python.layers.layers", "dense Conv2D"),
        ("tensorflow.python.layers.utils", "smart_cond"),
    ],
)
def test_import_names_of_tensorflow_1(module: str, names: str) -> None:
    loaded = importlib.import_module(keras_modules.module_name(module))
    assert [name for name in names.split() if not hasattr(loaded, name)] == []
