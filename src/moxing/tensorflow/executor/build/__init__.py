"""Everything before the session: the graph of a run.

`step.py` builds the step from its parts: `inputs/` (the batch), `model.py` (`model_fn`, once per tower), the strategy's
training step, `ledger.py` (counters in the graph).
Import `build_step` and `Step` from `step.py`.
"""
