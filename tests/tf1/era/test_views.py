"""Names of 2018, for modules of the user only. One process without TensorFlow."""

import textwrap

from helpers.launcher import moxing

SCRIPT = """
    import collections, inspect, itertools, logging, string, sys, time, timeit, types, urllib
    import numpy as np
    import numpy
    import numpy.random as npr
    from numpy import float as np_float
    from numpy.random import random_integers
    import pandas as pd
    import library

    # sys: written through, read live.
    assert sys.maxint == sys.maxsize and not hasattr(library.sys, 'maxint')
    sys.marker = 1
    assert library.sys.marker == 1
    library.sys.marker = 2
    assert sys.marker == 2 and sys.stdout is library.sys.stdout
    del sys.marker
    assert not hasattr(library.sys, 'marker') and isinstance(sys, types.ModuleType)
    reload(sys)
    sys.setdefaultencoding('utf8')

    # NumPy.
    assert (np.int, np.float, np.bool, np.object, np.str) == (int, float, bool, object, str)
    assert (np.long, np.unicode) == (int, str)
    assert np_float is float and numpy is np and npr is np.random and np.complex is complex
    assert np.zeros([2], dtype=np.int).dtype == np.int64 and np.ndarray is library.np.ndarray
    assert np.product([2, 3]) == 6 and np.cumproduct([2, 3]).tolist() == [2, 6] and np.alltrue([1]) and np.sometrue([1])
    assert np.in1d([1, 2], [2]).tolist() == [False, True] and np.asscalar(np.array([3])) == 3 and np.Inf == np.inf
    assert np.rank([[1]]) == 2 and np.round_(1.4) == 1 and np.float_ is np.float64 and np.mat([1]).shape == (1, 1)
    drawn = random_integers(low=0, high=2, size=[200])
    assert set(drawn) == {0, 1, 2} and set(np.random.random_integers(2, size=99)) == {1, 2}
    data = np.arange(3, dtype=np.uint8)
    read = np.fromstring(data.tostring(), np.uint8)
    read[0] = 9
    assert read.tolist() == [9, 1, 2] and np.fromstring('1 2', sep=' ').tolist() == [1, 2]
    assert np.fromstring('ab', dtype=np.uint8).tolist() == [97, 98]
    assert not hasattr(library.np, 'product') and not library.has_tostring(data)
    np.marker = 5
    assert library.np.marker == np.marker == 5
    assert 'int' in dir(np) and not hasattr(np, 'nonsense')

    # pandas.
    frame = pd.DataFrame({'a': [1], 'b': ['x']})
    longer = frame.append({'a': 2, 'b': 'y'}, ignore_index=True).append(frame)
    assert longer.values.tolist() == [[1, 'x'], [2, 'y'], [1, 'x']] and longer.index.tolist() == [0, 1, 0]
    grown = pd.DataFrame(columns=['a', 'b'])
    grown = grown.append(pd.Series([1, 2], index=['a', 'b']), ignore_index=True)
    grown = grown.append([{'a': 3, 'b': 4}], ignore_index=True)
    assert grown.values.tolist() == [[1, 2], [3, 4]]
    assert frame.append([frame, frame]).shape == (3, 2) and frame.append([]).shape == (1, 2)
    assert pd.Series([1]).append(pd.Series([2]), ignore_index=True).tolist() == [1, 2]
    assert not library.has_append(frame)

    # The standard library.
    assert time.clock() <= time.clock() and not hasattr(library.time, 'clock')
    assert isinstance({}, collections.Mapping) and collections.OrderedDict is library.collections.OrderedDict
    assert inspect.getargspec(lambda a, b=1, *c, **d: 0) == (['a', 'b'], 'c', 'd', (1,))
    assert list(itertools.izip([1], itertools.imap(str, [2]))) == [(1, '2')]
    assert string.letters[:2] == 'ab' and urllib.quote('a b') == 'a%20b' and urllib.urlencode({'a': 1}) == 'a=1'
    import ConfigParser, Queue, cPickle, urllib2, __builtin__
    from StringIO import StringIO
    from cStringIO import StringIO as Again
    assert Queue.Queue and cPickle.loads(cPickle.dumps(1)) == 1 and ConfigParser.ConfigParser and urllib2.URLError
    assert StringIO(u'x').read() == 'x' and Again is StringIO and __builtin__.xrange is range
    import commands
    assert commands.own, 'a module of the user goes before one of Python 2'
    assert reduce(lambda a, b: a + b, [1, 2]) == 3 and cmp(1, 2) == -1 and unichr(97) == 'a' and long(1) == 1
    assert isinstance(u'x', unicode) and isinstance('x', basestring) and intern('x') == 'x'
    try:
        import no_such_module
    except ImportError as error:
        assert error.name == 'no_such_module'

    # As fast as the modules themselves, or nearly so.
    for statement, bound in (('np.float32', 60e-9), ('sys.stdout', 500e-9), ('time.time', 60e-9)):
        ours, plain = (
            min(timeit.repeat(statement, globals=scope, number=20000, repeat=7)) for scope in (globals(), vars(library))
        )
        assert (ours - plain) / 20000 < bound, (statement, ours, plain)
    print('done')
"""

LIBRARY = """
import collections, sys, time
import numpy as np

def has_append(frame):
    return hasattr(frame, 'append')

def has_tostring(array):
    return hasattr(array, 'tostring')
"""


def test_names_of_2018(tmp_path):
    (tmp_path / "main.py").write_text(textwrap.dedent(SCRIPT))
    (tmp_path / "commands.py").write_text("own = True\n")
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "library.py").write_text(LIBRARY)
    result = moxing("run", "--verbose", "main.py", cwd=tmp_path, env={"PYTHONPATH": "site-packages"})
    assert result.stdout == "done\n", result.stderr
    notes = result.stderr.splitlines()
    for name in ("sys.maxint", "numpy.int", "DataFrame.append", "xrange", "module cPickle", "collections.Mapping"):
        assert sum(note.startswith(f"{name} is a name of an older version") for note in notes) == 1, name
    assert all("is a name of an older version: served as" in note for note in notes)
