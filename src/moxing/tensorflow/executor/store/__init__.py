"""Runs whose `log_dir` or `checkpoint_path` is a url: the run works in a local directory, the store gets a copy.

Which thread does what:

- The run's own thread enters `stage.open_stage`. Before the first step `remote_directory.py` and `fetching.py`
  download the checkpoint to start from (pool `mox-fetch`); `restart.py` serves `--restart`.
- The thread `mox-mirror` (`mirror.Mirror`) looks at the local directory every 0.5 s and uploads what changed.
  `upload_schedule.py` says when a file is due again, `uploads.Uploader` sends it (pool `mox-upload`).
- A checkpoint becomes valid on the store in `checkpoint_uploads.CheckpointUploads.upload_next`: files first, then
  `_mark_valid`, then old files are removed. The mirror thread calls it.
- At the end the run's own thread stops the mirror and uploads the rest (`Mirror.finish`).

`shown_names.py` shows urls instead of local paths in log lines and errors. Import `open_stage` and `UploadError`.
"""
