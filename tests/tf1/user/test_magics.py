"""Lines of notebooks that are not Python."""

import pytest

from moxing.tf1.user import magics


@pytest.mark.parametrize(
    ("cell", "python"),
    [
        ("x = (a\n% b)", "x = (a\n% b)"),  # Python already
        ("%matplotlib inline\nx = 1", "pass  # %matplotlib inline\nx = 1"),
        ("if a:\n  !ls -l 'b'\n", "if a:\n  __moxing_shell__(\"ls -l 'b'\", globals());\n"),
        ("%time train()", "train()"),
        ("x = %timeit f()", "x = f()"),
        ("%%time\nx = 1", "pass  # %%time\nx = 1"),
        ("tf.nn.relu?\n?x", "pass  # tf.nn.relu?\npass  # ?x"),
        ("%cd data", "__import__('os').chdir('data')"),
        ("%%bash\na\nb", "__moxing_shell__('a\\nb', globals());"),
    ],
)
def test_to_python(cell, python):
    assert magics.to_python(cell) == python


@pytest.mark.parametrize("cell", ["x = 1\n%run other.py", "%%javascript\nalert(1)", "%timeit -n 3 f()"])
def test_what_is_not_available_says_so(cell):
    with pytest.raises(SyntaxError, match="is not available under moxing run: remove it"):
        magics.to_python(cell)


def test_the_shell(capfd):
    assert magics.run_shell("echo {word} {other}; echo oops >&2; exit 3", {"word": 5}) == ["5 {other}", "oops"]
    assert capfd.readouterr().out.splitlines()[-1].endswith("ended with exit code 3")


@pytest.mark.parametrize(
    "command", ["pip install tensorflow==1.15", "sudo apt-get -qq install x", "python3 -m pip install a"]
)
def test_nothing_is_installed(command, capsys):
    assert magics.run_shell(command, {}) == []
    assert capsys.readouterr().out.startswith(f"moxing run: left out !{command}: ")
