"""`tf.flags` and `tf.app` as TensorFlow 1.4 had them."""

import sys

import pytest
from absl import flags as absl_flags

from moxing.framework import flags as moxing_flags
from moxing.tf1.user import app, flags


@pytest.fixture
def line(monkeypatch):
    """Sets the command line; the script's flags and MoXing's are forgotten before and after."""

    def set_line(*arguments):
        monkeypatch.setattr(sys, "argv", ["train.py", *arguments])

    fresh = flags.FlagValues(shared_with_moxing=True)
    monkeypatch.setattr(flags, "FLAGS", fresh)
    moxing_flags.FLAGS.reset()
    set_line()
    yield set_line
    moxing_flags.FLAGS.reset()


def test_four_types_and_both_generations_of_names(line):
    line("--data_url=s3://x", "--steps", "5", "--rate=0.5", "--nofast", "--name", "a b")
    flags.DEFINE_string("data_url", None, "Data.")
    flags.DEFINE_integer(flag_name="steps", default_value=1, docstring="Steps.")
    flags.DEFINE_float(name="rate", default=1.0, help=None)
    flags.DEFINE_boolean("fast", True, "Fast.")
    flags.DEFINE_string("name", "", "")
    flags.DEFINE_list("sizes", ["1"], "")
    flags.DEFINE_enum("kind", "a", ["a", "b"], "")
    read = flags.FLAGS
    assert (read.data_url, read.steps, read.rate, read.fast, read.name) == ("s3://x", 5, 0.5, False, "a b")
    assert (read.sizes, read.kind) == (["1"], "a")
    assert read.flag_values_dict()["steps"] == 5


def test_pitfall_2_1_1_the_class_has_its_old_name():
    assert isinstance(flags._FlagValues(), absl_flags.FlagValues)


def test_pitfall_2_1_2_a_list_as_a_string(line):
    line("--int_list=3,4")
    flags.DEFINE_string(name="int_list", default="0,1,2", help=None)
    assert [int(item) for item in flags.FLAGS.int_list.split(",")] == [3, 4]


def test_pitfall_2_4_3_an_empty_value_is_a_value(line):
    line("--data_url=", "--other", "")
    flags.DEFINE_string("data_url", default="s3://xxx", help=None)
    flags.DEFINE_string("other", "default", "")
    assert flags.FLAGS.data_url == flags.FLAGS.other == ""


def test_booleans_in_all_spellings(line):
    for arguments, expected in [
        (["--fast"], True),
        (["--fast=False"], False),
        (["--fast", "False"], False),
        (["--fast", "true"], True),
        (["--nofast"], False),
        (["-fast"], True),
        (["--fast", "file"], True),
    ]:
        line(*arguments)
        values = flags.FlagValues()
        flags.DEFINE_bool("fast", not expected, "", flag_values=values)
        assert values.fast is expected, arguments


def test_unknown_flags_and_positions_are_left_alone(line):
    line("first", "--num_gpus=4", "--nobody", "value", "--x=1", "-k", "--", "--x=2")
    flags.DEFINE_integer("x", 0, "")
    assert flags.FLAGS.x == 1
    assert flags.FLAGS._parse_flags() == ["first", "--num_gpus=4", "--nobody", "value", "-k", "--", "--x=2"]
    assert flags.FLAGS(sys.argv)[0] == "train.py"


def test_flags_defined_after_the_first_access_are_read(line):
    line("--a=1", "--b=2")
    flags.DEFINE_integer("a", 0, "")
    assert flags.FLAGS.a == 1
    flags.FLAGS.a = 10
    flags.DEFINE_integer("b", 0, "")
    assert (flags.FLAGS.a, flags.FLAGS.b) == (10, 2)


def test_a_value_that_was_set_survives_the_first_access(line):
    line("--a=1")
    flags.DEFINE_integer("a", 0, "")
    flags.FLAGS.a = 3
    flags.FLAGS.no_flag_of_this_name = "kept"
    assert (flags.FLAGS.a, flags.FLAGS.no_flag_of_this_name) == (3, "kept")


def test_names_that_absl_has_taken(line):
    line("--log_dir=/mine", "--v=3")
    import absl.logging  # noqa: F401  (defines log_dir, v and verbosity in absl's own registry)

    flags.DEFINE_string("log_dir", "", "")
    assert flags.FLAGS.log_dir == "/mine"
    assert absl_flags.FLAGS["log_dir"].value != "/mine"
    # From TensorFlow 1.5 on absl's flags were there too.
    assert isinstance(flags.FLAGS.verbosity, int)


def test_duplicates(line):
    def define():
        flags.DEFINE_string("once", "first", "", short_name="o")

    define()
    define()
    with pytest.raises(absl_flags.DuplicateFlagError):
        flags.DEFINE_string("once", "second", "")


def test_unknown_names_are_errors_with_the_nearest(line):
    flags.DEFINE_string("train_url", "", "")
    with pytest.raises(AttributeError, match="train_ur'.*train_url"):
        _ = flags.FLAGS.train_ur
    assert not hasattr(flags.FLAGS, "__wrapped__")


@pytest.mark.parametrize("arguments", [["--steps=many"], ["--steps"], ["--steps", "--other"]])
def test_wrong_values_end_the_program_with_a_line(line, capsys, arguments):
    line(*arguments)
    flags.DEFINE_integer("steps", 0, "")
    with pytest.raises(SystemExit) as ended:
        _ = flags.FLAGS.steps
    assert ended.value.code == 2
    assert "train.py: error:" in (said := capsys.readouterr().err) and "steps" in said
    assert arguments != ["--steps=many"] or said == "train.py: error: flag --steps=many: expected an integer\n"


def test_validators(line, capsys):
    flags.DEFINE_string("data_url", None, "")
    flags.mark_flag_as_required("data_url")
    with pytest.raises(SystemExit):
        _ = flags.FLAGS.data_url
    assert "data_url" in capsys.readouterr().err


def test_help_shows_the_flags_of_the_script_and_of_moxing(line, capsys):
    line("--help")
    flags.DEFINE_string("data_url", None, "Where the data is.")
    with pytest.raises(SystemExit) as ended:
        _ = flags.FLAGS.data_url
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert "Where the data is." in said and "--num_gpus" in said


def test_a_flag_with_a_name_of_moxing_belongs_to_the_script(line):
    line("--num_gpus=2")
    assert moxing_flags.FLAGS.get("num_gpus") == 2
    flags.DEFINE_integer("num_gpus", 8, "")
    assert flags.FLAGS.num_gpus == moxing_flags.FLAGS.get("num_gpus") == 2
    flags.FLAGS.num_gpus = 4
    assert moxing_flags.FLAGS.get("num_gpus") == 4
    moxing_flags.FLAGS.set("num_gpus", 1)
    assert flags.FLAGS.num_gpus == 1


def test_app_run(line, monkeypatch):
    line("--steps=3", "--num_gpus=1", "file")
    flags.DEFINE_integer("steps", 0, "")
    seen = []

    def main(argv):
        seen.append((argv, flags.FLAGS.steps))
        return 5

    with pytest.raises(SystemExit) as ended:
        app.run(main)
    assert ended.value.code == 5
    assert seen == [(["train.py", "--num_gpus=1", "file"], 3)]
    monkeypatch.setattr(sys.modules["__main__"], "main", main, raising=False)
    with pytest.raises(SystemExit):
        app.run(argv=["other.py", "--steps=9", "rest"])
    assert seen[1] == (["other.py", "rest"], 9)


def test_parsing_anew(line):
    line("--a=1")
    flags.DEFINE_integer("a", 0, "")
    assert flags.FLAGS.a == 1
    line("--a=2")
    flags.FLAGS.unparse_flags()
    assert flags.FLAGS.a == 2
    assert flags.FLAGS["a"].value == 2
    assert "DEFINE_multi_string" in dir(flags)


def test_the_private_dictionary_has_values_that_are_flags_too(line):
    line("--steps=5", "--nofast")
    flags.DEFINE_integer("steps", 1, "Steps.")
    flags.DEFINE_boolean("fast", True, "Fast.")
    flags.DEFINE_string("name", None, "Name.")
    found = getattr(flags.FLAGS, "__flags")  # noqa: B009
    # TensorFlow 1.4 had values here, later versions flags.
    assert sorted(found.items()) == [("fast", False), ("name", None), ("steps", 5)]
    assert [found[name].value for name in ("fast", "name", "steps")] == [False, None, 5]
    assert f"{found['steps']} {found['fast']} {found['name']}" == "5 False None" and "steps" in found
