"""Everything between the open session and the last step.

`session.py` opens the session. `step_loop.py` runs k steps per `session.run`. `runner.py` decides on k, lets actions
act between calls and ends the run. `progress.py` is what a call reports. `signals.py` turns Ctrl-C and SIGTERM into a
stop; `progress_bar.py` shows the bar.
"""
