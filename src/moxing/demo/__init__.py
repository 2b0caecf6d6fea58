"""The programs of `moxing demo`: a training script as people wrote them in 2018, and a client of the exported model."""
