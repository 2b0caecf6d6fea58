"""`mox.file.copy` and `mox.file.copy_parallel`: plan a copy, then run it.

`copy` holds the two public functions. `source` lists what there is to copy, `plan.CopyPlan` checks everything before
the first byte (with `target_tree` for local targets), `run_plan.run_plan` runs it with threads and worker processes
(`worker`), and `copy_file` copies one file. The command line uses the same plan and runner.
"""
