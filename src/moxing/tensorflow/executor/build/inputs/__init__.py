"""The input of a step: `input_fn` becomes one `tf.data.Dataset`, and `build_inputs` the batches of all towers.

`inputs.py` calls `input_fn` and records its iterators; `build.py` turns them into the dataset of this worker, in
batches (`stream.py`: where reading starts, which shard; `lifting.py`: per-sample ops become a parallel `Dataset.map`;
`limit.py`: a number of samples); `share.py` splits data between towers and workers.
Inputs that cannot become a dataset stay queues (`queues.py`). Import from here only the names below.
"""

from moxing.tensorflow.executor.build.inputs.build import build_inputs
from moxing.tensorflow.executor.build.inputs.inputs import Inputs, Probe
from moxing.tensorflow.executor.build.inputs.share import EVERYTHING, Share

__all__ = ["EVERYTHING", "Inputs", "Probe", "Share", "build_inputs"]
