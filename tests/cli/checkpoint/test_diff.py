"""`moxing checkpoint diff`: between two checkpoints, and between a checkpoint and a network of the zoo."""

import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from checkpoint_files import W

from moxing.cli import main
from moxing.tensorflow.nets import get_model_fn


def save(prefix, values, version=tf.train.SaverDef.V2):
    os.makedirs(os.path.dirname(prefix) or ".", exist_ok=True)
    with tf.Graph().as_default(), tf.Session() as session:
        variables = {name: tf.Variable(value, use_resource=False) for name, value in values.items()}
        session.run(tf.global_variables_initializer())
        tf.train.Saver(variables, write_version=version).save(session, prefix, write_meta_graph=False)


def run(*words, code=0):
    assert main.main(["checkpoint", "diff", *map(str, words)]) == code


def test_the_same_in_both_formats(capsys):
    save("a.ckpt", {"w": W, "n": np.int64(3)}, tf.train.SaverDef.V1)
    save("b.ckpt", {"w": W, "n": np.int64(3)})
    run("a.ckpt", "b.ckpt", "--values")
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "A: a.ckpt (V1 format), 2 variables",
        "B: b.ckpt (V2 format), 2 variables",
        "Same name, shape and type: 2 variables",
        "No differences.",
        "Values that differ at all: 0 of 2 variables",
    ]
    assert "error" not in err


def test_all_kinds_of_differences(capsys):
    save("a.ckpt", {"mine": W, "w": W, "shape": W, "type": W, "w/Momentum": W, "beta1_power": np.float32(0.9)})
    save("b.ckpt", {"other": np.zeros(2), "w": W, "shape": W.T, "type": W.astype(np.float64)})
    run("a.ckpt", "b.ckpt", code=1)
    assert capsys.readouterr().out.splitlines() == [
        "A: a.ckpt (V2 format), 6 variables",
        "B: b.ckpt (V2 format), 4 variables",
        "Same name, shape and type: 1 variable",
        "Differences: 1 only in A, 2 optimizer slots only in A, 1 only in B, 1 in shape, 1 in type",
        "Only in A: 1 variable",
        "  mine  [2, 3]  float32",
        "Only in A as well: 2 optimizer slots (--all lists them)",
        "Only in B: 1 variable",
        "  other  [2]  float64",
        "Different shapes: 1 variable",
        "  variable       A       B",
        "  shape     [2, 3]  [3, 2]",
        "Different types: 1 variable",
        "  variable        A        B",
        "  type      float32  float64",
    ]
    run("a.ckpt", "b.ckpt", "--all", code=1)
    out = capsys.readouterr().out
    assert "Only in A: 3 variables\n" in out and "  w/Momentum   [2, 3]  float32\n" in out


def test_slots_alone_are_a_difference_between_checkpoints(capsys):
    save("a.ckpt", {"w": W})
    save("b.ckpt", {"w": W, "w/Adam": W, "w/Adam_1": W})
    run("a.ckpt", "b.ckpt", code=1)
    assert capsys.readouterr().out.splitlines() == [
        "A: a.ckpt (V2 format), 1 variable",
        "B: b.ckpt (V2 format), 3 variables",
        "Same name, shape and type: 1 variable",
        "Differences: 2 optimizer slots only in B",
        "Only in B: 2 optimizer slots (--all lists them)",
    ]


def test_one_is_not_many(capsys):
    save("a.ckpt", {"w": W})
    save("b.ckpt", {"w": W + 1, "w/Momentum": W})
    run("a.ckpt", "b.ckpt", "--values", code=1)
    assert capsys.readouterr().out.splitlines()[2:6] == [
        "Same name, shape and type: 1 variable",
        "Differences: 1 optimizer slot only in B, 1 in values",
        "Only in B: 1 optimizer slot (--all lists them)",
        "Values that differ at all: 1 of 1 variable",
    ]
    run("zoo:lenet:1", "zoo:lenet:1")
    assert "A: network lenet of the zoo with 1 class, 8 variables\n" in capsys.readouterr().out


def test_long_lists_are_cut_and_the_verdict_comes_before_them(capsys):
    both = {f"both{number:02}": W for number in range(21)}
    save("a.ckpt", {**both, **{f"a{number:02}": W for number in range(23)}, **{f"t{i:02}": W for i in range(22)}})
    changed = {name: value + 1 for name, value in both.items()}
    save("b.ckpt", {**changed, **{f"b{i:02}": W for i in range(20)}, **{f"t{i:02}": W.T for i in range(22)}})
    run("a.ckpt", "b.ckpt", "--values", code=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:7] == [
        "Same name, shape and type: 21 variables",
        "Differences: 23 only in A, 20 only in B, 22 in shape, 21 in values",
        "Only in A: 23 variables",
        "  a00  [2, 3]  float32",
        "  a01  [2, 3]  float32",
    ]
    assert lines[24:28] == [
        "  a19  [2, 3]  float32",
        "  ... and 3 more (--all shows them)",
        "Only in B: 20 variables",
        "  b00  [2, 3]  float32",
    ]
    # A list of 20 is whole, and a header is not counted as a row.
    assert lines[46:50] == [
        "  b19  [2, 3]  float32",
        "Different shapes: 22 variables",
        "  variable       A       B",
        "  t00       [2, 3]  [3, 2]",
    ]
    assert lines[68:71] == [
        "  t19       [2, 3]  [3, 2]",
        "  ... and 2 more (--all shows them)",
        "Values that differ at all: 21 of 21 variables",
    ]
    assert lines[-2].split()[0] == "both19" and lines[-1] == "  ... and 1 more (--all shows them)"
    run("a.ckpt", "b.ckpt", "--values", "--all", code=1)
    whole = capsys.readouterr().out.splitlines()
    assert whole[:5] == lines[:5]
    assert "  a22  [2, 3]  float32" in whole and whole[-1].split()[0] == "both20"
    assert not [line for line in whole if "more" in line]


def test_values_most_different_first_and_the_tolerance(capsys):
    more = {"little": W + np.float32([[0, 0, 0], [0, 0, 0.25]]), "much": -W, "none": W, "step": np.int64(2**62 + 1)}
    save("a.ckpt", {"little": W, "much": W, "none": W, "step": np.int64(2**62)})
    save("b.ckpt", more)
    run("a.ckpt", "b.ckpt", code=0)
    capsys.readouterr()
    run("a.ckpt", "b.ckpt", "--values", code=1)
    assert capsys.readouterr().out.splitlines()[3:] == [
        "Differences: 3 in values",
        "Values that differ at all: 3 of 4 variables",
        "  variable  largest difference                 in A                 in B",
        "  much                      10                    5                   -5",
        f"  step                       1  {2**62}  {2**62 + 1}",
        "  little                  0.25                    5                 5.25",
    ]
    run("a.ckpt", "b.ckpt", "--values", "--tolerance", "0.25", code=1)
    out = capsys.readouterr().out
    assert "Values that differ by more than 0.25: 2 of 4 variables\n" in out and "little" not in out
    run("a.ckpt", "b.ckpt", "--values", "--tolerance", "10")
    assert "No differences." in capsys.readouterr().out


def test_nan_infinity_text_and_other_types(capsys):
    nan, inf = np.float32([np.nan, 1]), np.float32([np.inf, 1])
    same = {"nan": nan, "inf": inf, "text": np.array([b"a\0", b"b"], object), "none": np.zeros([0], np.float32)}
    save("a.ckpt", {**same, "lost": nan, "sign": inf, "word": np.array(["x"]), "half": W.astype(np.float16)})
    save("b.ckpt", {**same, "lost": np.ones(2, np.float32), "sign": -inf, "word": np.array(["y"]), "half": W + 1})
    run("a.ckpt", "b.ckpt", "--values", code=1)
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines()]
    assert "Values that differ at all: 4 of 8 variables\n" in out
    assert lines[-4:] == [
        ["lost", "inf", "nan", "1"],
        ["sign", "inf", "inf", "-inf"],
        ["word", "inf", "text", "other", "text"],
        ["half", "1", "0", "1"],
    ]


def lenet(num_classes):
    """The variables of LeNet as a training with momentum saves them."""
    with tf.Graph().as_default():
        get_model_fn("lenet", "TRAIN", num_classes)(tf.zeros([1, 28, 28, 1]))
        values = {variable.op.name: np.zeros(variable.shape, np.float32) for variable in tf.global_variables()}
    slots = {f"{name}/Momentum": value for name, value in values.items()}
    return {**values, **slots, "global_step": np.int64(5)}


@pytest.mark.slow
def test_a_training_and_its_network(capsys):
    save("log/m.ckpt", lenet(10))
    run("log", "zoo:lenet:10")
    assert capsys.readouterr().out.splitlines() == [
        "A: log/m.ckpt (V2 format), 17 variables",
        "B: network lenet of the zoo with 10 classes, 8 variables",
        "Same name, shape and type: 8 variables",
        "No differences.",
        "Only in A: 8 optimizer slots and global_step, which a network never has (--all lists them)",
    ]
    run("zoo:lenet:10", "log", "--all", code=1)
    out = capsys.readouterr().out
    assert "Only in B: 9 variables\n" in out and "  global_step " in out
    run("zoo:lenet:11", "log", code=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[3] == "Differences: 2 in shape"
    assert [line.split() for line in lines[6:9]] == [
        ["variable", "A", "B"],
        ["LeNet/fc4/biases", "[11]", "[10]"],
        ["LeNet/fc4/weights", "[1024,", "11]", "[1024,", "10]"],
    ]


def test_a_network_lacks_what_a_checkpoint_has_and_the_other_way_round(capsys):
    values = lenet(10)
    del values["LeNet/fc4/biases"]
    save("m.ckpt", {**values, "LeNet/extra": W})
    run("m.ckpt", "zoo:lenet:10", code=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[3:6] == [
        "Differences: 1 only in A, 1 only in B",
        "Only in A: 1 variable",
        "  LeNet/extra  [2, 3]  float32",
    ]
    assert lines[7:9] == ["Only in B: 1 variable", "  LeNet/fc4/biases  [10]  float32"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "classes"), [("vgg_a", 1000), ("mobilenet_v1_025", 1001), ("lenet", 10)])
def test_without_a_number_the_published_classes_count(capsys, name, classes):
    run(f"zoo:{name}", f"zoo:{name}:{classes}")
    assert f"A: network {name} of the zoo with {classes:,} classes, " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("m.ckpt", "zoo:lenett"), "B='zoo:lenett': no such network; did you mean 'lenet'?\n"),
        (("zoo:", "m.ckpt"), "A='zoo:': no such network"),
        (("m.ckpt", "zoo:lenet:ten"), "B='zoo:lenet:ten': expected a number of classes after the name, such as"),
        (("m.ckpt", "zoo:lenet:0"), "B='zoo:lenet:0': expected a number of classes"),
        (("m.ckpt", "zoo:lenet:"), "B='zoo:lenet:': expected a number of classes"),
        (("m.ckpt", "zoo:lenet", "--values"), "--values: B='zoo:lenet' is a network, which has no values."),
        (("m.ckpt", "m.ckpt", "--tolerance", "1"), "--tolerance=1 needs --values."),
        (("m.ckpt", "m.ckpt", "--values", "--tolerance", "-1"), "--tolerance=-1: expected a number of at least 0."),
        (("m.ckpt", "m.ckpt", "--values", "--tolerance", "nan"), "--tolerance=nan: expected a number of at least 0."),
    ],
)  # fmt: skip
def test_errors_are_one_line(capsys, words, message):
    save("m.ckpt", {"w": W})
    run(*words, code=2)
    out, err = capsys.readouterr()
    assert err.startswith(f"moxing checkpoint diff: error: {message}") and err.count("\n") == 1
    assert out == ""


@pytest.mark.slow
@pytest.mark.realdata
def test_the_published_resnet_fits_the_network(real_data, capsys):
    path = real_data / "checkpoints" / "resnet_v1_50.ckpt"
    run(path, "zoo:resnet_v1_50")
    assert "Same name, shape and type: 267 variables\nNo differences.\n" in capsys.readouterr().out
    run(path, "zoo:resnet_v1_50:5", code=1)
    assert "Different shapes: 2 variables\n" in capsys.readouterr().out
