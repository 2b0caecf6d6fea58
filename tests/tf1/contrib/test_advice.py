"""Error messages for missing parts of `tf.contrib`."""

from moxing.tf1.contrib import _advice


def test_a_replacement_is_suggested_before_a_similar_name():
    assert "; use tf.contrib.training.HParams. tf.contrib has" in _advice.missing_part("hparams", ["slim", "params"])
    assert "; did you mean slim?" in _advice.missing_part("slimm", ["slim"])
    assert _advice.missing_part("qqq", ["slim"]) == "tf.contrib.qqq is not available. tf.contrib has: slim"


def test_names_below_a_part():
    message = _advice.missing_name("data", "prefetch_to_device", ["map_and_batch"])
    assert "mox.run prefetches by itself" in message and message.endswith("tf.contrib.data has: map_and_batch")
    assert _advice.missing_name("rnn", "qqq", []) == "tf.contrib.rnn.qqq is not available. tf.contrib.rnn has: "
