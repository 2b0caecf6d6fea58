"""The `moxing` command. Importing it imports no TensorFlow."""
