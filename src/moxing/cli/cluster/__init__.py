"""`moxing run --workers N`: a whole cluster on this machine.

`run.py` reads the options and builds the command line of every process; `launcher.py` supervises the processes and
restarts the job after a failure; `process.py` is one of them, `output.py` shows their output in one terminal;
`isolation.py` is `--isolate`. Other packages import `run`, and `launcher.free_ports`. Nothing here imports TensorFlow.
"""
