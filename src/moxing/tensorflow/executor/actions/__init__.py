"""What a run does between steps: log lines, summaries, checkpoints.

`Action` (`action.py`) is the base class; its defaults do nothing. An action says how many steps may pass before it is
due, and what the step must compute for it. Hooks that need no look at every step become actions, too
(`hooks/run_hook.py`). `run_actions` in `run.py` makes the actions of a run, in the order in which they act.
"""
