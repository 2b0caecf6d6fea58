"""MoXing's flags on a command line that argparse and absl read too. No process here imports TensorFlow."""

import textwrap

from helpers.launcher import moxing


def launch(tmp_path, script, *arguments):
    path = tmp_path / "main.py"
    path.write_text(textwrap.dedent(script))
    return moxing("run", "main.py", *arguments, cwd=tmp_path)


def test_pitfall_2_2_1_a_strict_parser_does_not_see_the_flags_of_moxing(tmp_path):
    script = """
        import argparse, sys
        from moxing.framework import flags as mox_flags
        parser = argparse.ArgumentParser()
        parser.add_argument('--data_url')
        parser.add_argument('--num_gpus_in_all', type=int, default=0)
        parser.add_argument('--task_index', type=int)
        for line in (None, sys.argv[1:]):
            args = parser.parse_args() if line is None else parser.parse_args(line)
            assert (args.data_url, args.num_gpus_in_all, args.task_index) == ('x', 0, 2)
        assert sys.argv[1:4] == ['--num_gpus=3', '--data_url', 'x']
        assert mox_flags.FLAGS.get('num_gpus') == 3 and mox_flags.FLAGS.get('sync_replicas') is False
        assert mox_flags.FLAGS.get('task_index') == 2
        args.task_index = 1
        assert mox_flags.FLAGS.get('task_index') == 1
        mox_flags.FLAGS.set('task_index', 0)
        assert args.task_index == 0
        known, rest = parser.parse_known_args()
        assert '--sync_replicas' in rest and known.data_url == 'x'
        try:
            parser.parse_args(['--data_url=y', '--ps_hosts=a:1'])
        except SystemExit as ended:
            print('explicit', ended.code)
        sub = argparse.ArgumentParser()
        train = sub.add_subparsers(dest='command').add_parser('train')
        train.add_argument('--rank', type=int)
        sys.argv[1:] = ['--num_gpus=2', 'train', '--rank', '5', '--ps_hosts', 'a:1']
        args = sub.parse_args()
        assert (args.command, args.rank) == ('train', 5) and mox_flags.FLAGS.get('rank') == 5
    """
    result = launch(tmp_path, script, "--num_gpus=3", "--data_url", "x", "--sync_replicas", "False", "--task_index=2")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "explicit 2\n"


def test_other_unknown_flags_are_errors_as_ever(tmp_path):
    script = "import argparse\nparser = argparse.ArgumentParser()\nparser.parse_args()\n"
    result = launch(tmp_path, script, "--num_gpus=1", "--unknown=1")
    assert result.returncode == 2
    assert result.stderr.endswith("unrecognized arguments: --unknown=1\n")


def test_a_flag_of_the_script_with_our_name_and_another_shape(tmp_path):
    script = """
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument('--rank', action='store_true')
        print(parser.parse_args().rank)
    """
    assert launch(tmp_path, script, "--rank").stdout == "True\n"


def test_absl_keeps_its_own_ways(tmp_path):
    script = """
        from absl import app, flags
        from moxing.framework import flags as mox_flags
        flags.DEFINE_integer('steps', 1, '')
        flags.DEFINE_integer('task_index', 0, '')

        def main(argv):
            print(argv, flags.FLAGS.steps, flags.FLAGS.task_index, mox_flags.FLAGS.get('task_index'))
            print(mox_flags.FLAGS.get('num_gpus'))

        app.run(main)
    """
    result = launch(tmp_path, script, "--steps=2", "--num_gpus", "4", "--task_index=3", "rest")
    assert result.stdout == "['main.py', 'rest'] 2 3 3\n4\n", result.stderr
    result = launch(tmp_path, script, "--unknown=2", "--num_gpus=4")
    assert result.returncode == 1 and "unknown" in result.stderr
