"""Names, modes, sizes and options of `mox.get_data_augmentation_fn`."""

from __future__ import annotations

from enum import Enum

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from augmenting import augment

from moxing.tensorflow.executor.specs import ModeKeys
from moxing.tensorflow.network_registry import NetworkKeys
from moxing.tensorflow.preprocessing import PreprocessingKeys, get_data_augmentation_fn, preprocessing_factory
from moxing.tensorflow.preprocessing.lenet_preprocessing import LenetPreprocessing
from moxing.tensorflow.preprocessing.preprocessing_factory import normalise_pixels, register_preprocessing

OF = {
    "vgg": """alexnet_v2 overfeat resnet_v1_18 resnet_v1_50 resnet_v1_50_8k resnet_v1_101 resnet_v1_152 resnet_v1_200
        resnet_v2_50 resnet_v2_101 resnet_v2_152 resnet_v2_200 resnext_b_50 resnext_b_101 resnext_c_50 resnext_c_101
        vgg vgg_a vgg_16 vgg_19 vgg_a_bn vgg_16_bn vgg_19_bn resnet_v1_50_mox resnet_v1_50_oct""",
    "inception": """inception inception_v1 inception_v2 inception_v3 inception_v4 inception_resnet_v2 mobilenet_v1
        mobilenet_v1_075 mobilenet_v1_050 mobilenet_v1_025 mobilenet_v2 mobilenet_v2_140 mobilenet_v2_035 nasnet_mobile
        nasnet_large pnasnet_large pnasnet_mobile xception_41 xception_65 xception_71""",
    "cifarnet": "cifarnet resnet_v1_20 resnet_v1_110 nasnet_cifar",
    "lenet": "lenet",
    "pvanet": "pvanet",
}
OPTION = {
    "vgg": "resize_side_min, resize_side_max",
    "inception": "fast_mode, central_fraction",
    "cifarnet": "padding",
    "lenet": "none",
    "pvanet": "resize_side",
}
NETWORKS = [(network, pipeline) for pipeline, networks in OF.items() for network in networks.split()]


@pytest.mark.parametrize(("network", "pipeline"), NETWORKS)
def test_every_network_has_its_pipeline(network, pipeline):
    with pytest.raises(TypeError, match=f"has no option bbox; its options: {OPTION[pipeline]}\\."):
        get_data_augmentation_fn(network, "EVAL", bbox=None)


def test_no_name_is_forgotten():
    names = {key.value for key in PreprocessingKeys}
    assert names == {"vgg", "inception", *NetworkKeys}
    assert {network for network, _ in NETWORKS} <= names
    assert all(key.name == key.value.upper() for key in PreprocessingKeys)


@pytest.mark.parametrize(
    ("network", "size"),
    [("resnet_v1_50", 224), ("vgg", 224), ("alexnet_v2", 224), ("pvanet", 192), ("overfeat", 231), ("lenet", 28)]
    + [("inception_v1", 224), ("inception_v2", 224), ("inception_v3", 299), ("inception_v4", 299), ("inception", 299)]
    + [("inception_resnet_v2", 299), ("xception_41", 299), ("xception_65", 299), ("xception_71", 299)]
    + [("nasnet_large", 331), ("pnasnet_large", 331), ("nasnet_mobile", 224), ("pnasnet_mobile", 224)]
    + [("cifarnet", 32), ("resnet_v1_20", 32), ("resnet_v1_110", 32), ("nasnet_cifar", 32), ("mobilenet_v1", 224)],
)
def test_default_sizes(network, size):
    fn = get_data_augmentation_fn(network, "TRAIN")
    assert (fn.output_height, fn.output_width) == (size, size)
    assert get_data_augmentation_fn(network, "EVAL", output_width=np.int64(20)).output_width == 20


def test_names_and_modes_in_every_form():
    class NetworkKeys(Enum):
        LENET = "lenet"

    for name in ("lenet", "LENET", PreprocessingKeys.LENET, NetworkKeys.LENET):
        for mode in (ModeKeys.TRAIN, "TRAIN", "train"):
            assert get_data_augmentation_fn(name, mode).training
        for mode in (ModeKeys.EVAL, ModeKeys.PREDICT, ModeKeys.EXPORT, "eval", "predict", "EXPORT"):
            assert not get_data_augmentation_fn(name, mode).training


def test_unknown_names_and_modes():
    with pytest.raises(ValueError, match=r"name='resnet_v1_51'\): no such network; did you mean 'resnet_v1_50' or"):
        get_data_augmentation_fn("resnet_v1_51", "TRAIN")
    with pytest.raises(ValueError, match="expected one of alexnet_v2, cifarnet, .*xception_71"):
        get_data_augmentation_fn("???", "TRAIN")
    with pytest.raises(ValueError, match=r"run_mode='TEST'\): expected one of mox.ModeKeys: TRAIN, EVAL, PREDICT"):
        get_data_augmentation_fn("lenet", "TEST")
    with pytest.raises(ValueError, match="run_mode=None"):
        get_data_augmentation_fn("lenet", None)


@pytest.mark.parametrize("size", [0, -3, 2.5, "224", True])
def test_bad_sizes(size):
    with pytest.raises(ValueError, match="output_height=.*expected a positive whole number of pixels"):
        get_data_augmentation_fn("lenet", "EVAL", output_height=size)


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.parametrize("name", ["resnet_v1_50", "inception_v3"])
def test_photos(real_data, name):
    paths = sorted((real_data / "flowers").glob("*/*.jpg"))[:4]
    for path in paths:
        data = path.read_bytes()
        with tf.Graph().as_default(), tf.Session() as session:
            pixels = session.run(tf.image.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE"))
        encoded = augment(name, "EVAL", data, encoded=True)
        np.testing.assert_allclose(encoded, augment(name, "EVAL", pixels), atol=1e-4)
        unit = 255 if name == "resnet_v1_50" else 2
        small = augment(name, "TRAIN", data, seed=(1, 2), encoded=True)
        whole = augment(name, "TRAIN", pixels, seed=(1, 2))
        assert np.abs(small - whole).mean() < 0.06 * unit


def test_pipelines_of_a_users_own(monkeypatch):
    monkeypatch.setattr(preprocessing_factory, "_PIPELINES", dict(preprocessing_factory._PIPELINES))
    with pytest.raises(ValueError, match=r"preprocessing='own'\): expected one of cifarnet, inception"):
        normalise_pixels("own", tf.zeros([]))
    register_preprocessing("own", LenetPreprocessing)
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(normalise_pixels("own", tf.constant([192], tf.uint8))).tolist() == [0.5]
    with pytest.raises(ValueError, match="there is a pipeline of this name already"):
        register_preprocessing("own", LenetPreprocessing)
