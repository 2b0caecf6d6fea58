"""Names that refuse when they are called."""

import pytest

from moxing.tf1.contrib import _refusal


def test_a_refusal_can_be_imported_and_subclassed_but_not_called():
    module = _refusal.module(
        "gan", "tf.contrib.gan", _refusal.Part("use the package tensorflow-gan", {"root": "math:sqrt"}, "python")
    )
    assert module.root(4) == 2 and module.python is module
    message = r"tf.contrib.gan.features.clip is not available: use the package tensorflow-gan\."
    with pytest.raises(NotImplementedError, match=message):
        module.features.clip(1)

    class Mine(module.GANModel):
        pass

    with pytest.raises(NotImplementedError, match="tf.contrib.gan.GANModel"):
        Mine()
    assert module.GANModel is module.GANModel and module.__doc__.startswith("`tf.contrib.gan`.")
    for broken in (lambda: module._private, lambda: module.GANModel._private):
        with pytest.raises(AttributeError, match="_private"):
            broken()
