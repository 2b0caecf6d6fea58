"""Evaluation inside training (`inter_mode`).

`branch.py` builds the model in `inter_mode` beside the training step, on the same variables. `evaluator.py` runs it and
averages its metrics. `evaluate_action.py` does that when a hook is due and gives the hook the metrics; `control.py` is
what the hook can then do to the run. `evaluations.py` makes the actions: import `evaluation_actions` from there.
"""
