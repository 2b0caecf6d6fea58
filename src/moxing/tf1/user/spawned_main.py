"""`multiprocessing` runs this in a child process in place of the launched script: see `child_processes.py`."""

from moxing.tf1.user import child_processes, launcher

if __name__ == "__mp_main__":
    globals().update(launcher.load_main(child_processes.remembered(), "__mp_main__"))
