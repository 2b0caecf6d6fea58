"""Run by `multiprocessing` in place of a launched script, in a child process: see `processes.py`."""

from moxing.tf1 import launcher, processes

if __name__ == "__mp_main__":
    globals().update(launcher.load_main(processes.remembered(), "__mp_main__"))
