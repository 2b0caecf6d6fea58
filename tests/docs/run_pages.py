"""Runs the Python blocks of documentation pages; started by `moxing run`, as a reader would start them.

Arguments: a file to write the outcome to, then the pages. Every page gets an empty directory and one namespace for all
its blocks. The outcome is a JSON object: the page, and the error of its first failing block or null.
"""

import json
import os
import re
import sys
import tempfile
import traceback

import tensorflow as tf

from moxing.framework.flags import FLAGS

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def run_page(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    sys.argv = ["train.py"]
    FLAGS.reset()
    for name in list(tf.flags.FLAGS):
        delattr(tf.flags.FLAGS, name)
    namespace = {"__name__": "__main__"}
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start(1))
        # In a file of its own, where TensorFlow finds the source of a function; with the line numbers of the page.
        file_name = os.path.abspath(f"{os.path.basename(path)}.line_{line}.py")
        code = "\n" * line + match.group(1)
        with open(file_name, "w", encoding="utf-8") as file:
            file.write(code)
        try:
            exec(compile(code, file_name, "exec"), namespace)
        except BaseException:
            return traceback.format_exc()
        sys.stdout.flush()
    return None


def main(outcome_file, *pages):
    outcome = {}
    start = os.getcwd()
    for page in pages:
        print(f"--- {page}", flush=True)
        with tempfile.TemporaryDirectory() as directory:
            os.chdir(directory)
            try:
                outcome[page] = run_page(page)
            finally:
                os.chdir(start)
    with open(outcome_file, "w", encoding="utf-8") as file:
        json.dump(outcome, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
