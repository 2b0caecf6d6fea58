"""`scipy.misc` of 2018: pictures as arrays with Pillow, and functions that moved to `scipy.special`."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["bytescale", "fromimage", "imread", "imresize", "imrotate", "imsave", "imshow", "toimage"]

#: Names of `scipy.misc`, and where they are today.
_MOVED = {
    "comb": "scipy.special",
    "factorial": "scipy.special",
    "logsumexp": "scipy.special",
    "face": "scipy.datasets",
    "ascent": "scipy.datasets",
}
_FILTERS = {
    "nearest": "NEAREST",
    "lanczos": "LANCZOS",
    "bilinear": "BILINEAR",
    "bicubic": "BICUBIC",
    "cubic": "BICUBIC",
}


def __getattr__(name: str) -> Any:
    if name not in _MOVED:
        raise AttributeError(f"module 'scipy.misc' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_MOVED[name]), name)


def imread(name: Any, flatten: bool = False, mode: str | None = None) -> np.ndarray:
    """Reads a picture as an array.

    Args:
      name: the path, or an open file.
      flatten: whether to return gray values, float32.
      mode: the mode of Pillow to convert it to, such as `L` or `RGB`.
    """
    from PIL import Image

    with Image.open(name) as picture:
        return fromimage(picture, flatten, mode)


def fromimage(im: Any, flatten: bool = False, mode: str | None = None) -> np.ndarray:
    """Returns a picture of Pillow as an array."""
    if mode is not None and mode != im.mode:
        im = im.convert(mode)
    elif im.mode == "P":
        im = im.convert("RGBA" if "transparency" in im.info else "RGB")
    elif im.mode == "1":
        im = im.convert("L")
    if flatten:
        im = im.convert("F")
    return np.array(im)


def imsave(name: Any, arr: Any, format: str | None = None) -> None:
    """Writes an array as a picture; values that are no bytes are scaled to 0..255."""
    picture = toimage(arr, channel_axis=2)
    if format is None:
        picture.save(name)
    else:
        picture.save(name, format)


def bytescale(data: Any, cmin: Any = None, cmax: Any = None, high: int = 255, low: int = 0) -> np.ndarray:
    """Scales values from [cmin, cmax], by default their range, to bytes from low to high.

    Example:
      >>> bytescale(np.array([0.0, 0.5, 1.0])).tolist()
      [0, 128, 255]
    """
    array = np.asarray(data)
    if array.dtype == np.uint8:
        return array
    if not 0 <= low <= high <= 255:
        raise ValueError(f"low and high must be in 0..255 and in order, got {low} and {high}")
    least = array.min() if cmin is None else cmin
    most = array.max() if cmax is None else cmax
    if most < least:
        raise ValueError(f"cmax={most} must not be less than cmin={least}")
    scale = (high - low) / (float(most - least) or 1.0)
    scaled = (array - least) * scale + low
    return (scaled.clip(low, high) + 0.5).astype(np.uint8)


def toimage(
    arr: Any,
    high: int = 255,
    low: int = 0,
    cmin: Any = None,
    cmax: Any = None,
    pal: Any = None,
    mode: str | None = None,
    channel_axis: int | None = None,
) -> Any:
    """Returns an array as a picture of Pillow.

    Args:
      arr: [height, width], or with three or four channels in any axis.
      high: the byte of the greatest value.
      low: the byte of the least value.
      cmin: the least value; that of the array by default.
      cmax: the greatest value.
      pal: a palette; not available.
      mode: the mode of the picture; by default L, RGB or RGBA. F and I keep the values.
      channel_axis: the axis of the channels; found by its size by default.
    """
    from PIL import Image

    if pal is not None:
        raise NotImplementedError("scipy.misc.toimage(pal=...): use PIL.Image.Image.putpalette.")
    array = np.asarray(arr)
    if array.ndim == 2:
        if mode in ("F", "I"):
            return Image.fromarray(array.astype(np.float32 if mode == "F" else np.int32))
        picture = Image.fromarray(bytescale(array, cmin, cmax, high, low))
        return picture if mode in (None, "L") else picture.convert(mode)
    if array.ndim != 3 or not {3, 4} & set(array.shape):
        raise ValueError(f"'arr' does not have a suitable array shape for any mode: {array.shape}")
    axis = channel_axis
    if axis is None or array.shape[axis] not in (3, 4):
        axis = array.shape.index(3 if 3 in array.shape else 4)
    channels = np.moveaxis(bytescale(array, cmin, cmax, high, low), axis, 2)
    picture = Image.fromarray(np.ascontiguousarray(channels))
    return picture if mode in (None, picture.mode) else picture.convert(mode)


def imresize(arr: Any, size: Any, interp: str = "bilinear", mode: str | None = None) -> np.ndarray:
    """Resizes an array as a picture.

    Args:
      arr: the array; values that are no bytes are scaled to 0..255 first.
      size: (height, width), or a percentage (int), or a factor (float).
      interp: nearest, lanczos, bilinear, bicubic or cubic.
      mode: the mode of Pillow.
    """
    from PIL import Image

    if interp not in _FILTERS:
        raise ValueError(f"interp={interp!r}: expected one of {', '.join(_FILTERS)}")
    picture = toimage(arr, mode=mode)
    if np.ndim(size):
        wanted = (int(size[1]), int(size[0]))
    else:
        factor = size / 100.0 if isinstance(size, int | np.integer) else size
        wanted = tuple((np.array(picture.size) * factor).astype(int).tolist())
    return fromimage(picture.resize(wanted, getattr(Image.Resampling, _FILTERS[interp])))


def imrotate(arr: Any, angle: float, interp: str = "bilinear") -> np.ndarray:
    """Rotates an array as a picture, counter-clockwise in degrees."""
    from PIL import Image

    if interp not in ("nearest", "bilinear", "bicubic", "cubic"):
        raise ValueError(f"interp={interp!r}: expected nearest, bilinear, bicubic or cubic")
    return fromimage(toimage(arr).rotate(angle, getattr(Image.Resampling, _FILTERS[interp])))


def imshow(arr: Any) -> None:
    """Shows an array as a picture, with the viewer of the system."""
    toimage(arr).show()
