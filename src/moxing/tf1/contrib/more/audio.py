"""`tensorflow.contrib.framework.python.ops.audio_ops`: sound as spectrograms."""

from __future__ import annotations

from moxing.tf1.contrib import _lazy

_NAMES = _lazy.names(
    ("tensorflow.python.ops.gen_audio_ops:", "audio_spectrogram mfcc"),
    ("tensorflow.compat.v1:audio", "decode_wav encode_wav"),
)
__all__ = list(_NAMES)
__getattr__, __dir__ = _lazy.module_functions(__name__, _NAMES)
