"""Cost of decoding and resizing: CPU milliseconds per image, one thread, files in memory."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable

import tensorflow as tf
from common import SIDE, arguments, listing
from PIL import Image

LOW, HIGH = 350, 460  # every image is larger


def milliseconds(function: Callable[[], object], count: int) -> float:
    """Return the minimum of five passes over `count` images: other load on the machine only adds time."""
    passes = []
    for _ in range(5):
        began = time.process_time()
        function()
        passes.append(time.process_time() - began)
    return min(passes) * 1e3 / count


def tensorflow_ms(contents: list[bytes], stage: Callable[[tf.Tensor], tf.Tensor]) -> float:
    options = tf.data.Options()
    options.autotune.enabled = False
    options.threading.private_threadpool_size = options.threading.max_intra_op_parallelism = 1
    data = tf.data.Dataset.from_tensor_slices(contents).map(stage).batch(len(contents)).with_options(options)
    return milliseconds(lambda: next(iter(data)), len(contents))


def pillow_ms(contents: list[bytes], stage: Callable[[Image.Image], object]) -> float:
    return milliseconds(lambda: [stage(Image.open(io.BytesIO(content))) for content in contents], len(contents))


def decode(content: tf.Tensor) -> tf.Tensor:
    return tf.image.decode_jpeg(content, 3)


def decode_window(content: tf.Tensor, side: int) -> tf.Tensor:
    return tf.image.decode_and_crop_jpeg(content, [(LOW - side) // 2, (HIGH - side) // 2, side, side], 3)


def pixel(image: tf.Tensor) -> tf.Tensor:
    """Return one pixel, so that the work is done but no image is copied."""
    return image[0, 0]


def main() -> None:
    _, folder, _ = arguments()
    contents = []
    for path in listing(folder, "jpeg")[0][::4]:
        with open(path, "rb") as file:
            contents.append(file.read())
    nothing = tensorflow_ms(contents, tf.strings.length)
    whole = tensorflow_ms(contents, lambda content: pixel(decode(content)))
    print(f"@a map call that does nothing|{nothing:.2f}")
    print(f"@decode, TensorFlow|{whole - nothing:.2f}")
    for side in (256, 384, 512):
        size = [side, side * 4 // 3]
        with_resize = tensorflow_ms(contents, lambda content, size=size: pixel(tf.image.resize(decode(content), size)))
        print(f"@resize of the whole picture to short side {side}|{with_resize - whole:.2f}")
    # Windows that become 224 x 224 when the short side is resized from 375 to 512, (nearly) 384 and 256.
    for side in (164, 220, 328):
        part = tensorflow_ms(contents, lambda content, side=side: pixel(decode_window(content, side)))
        both = tensorflow_ms(
            contents, lambda content, side=side: pixel(tf.image.resize(decode_window(content, side), [SIDE, SIDE]))
        )
        print(f"@decode of a window of {side}|{part - nothing:.2f}")
        print(f"@resize of that window to {SIDE}|{both - part:.2f}")
    print(f"@decode, Pillow|{pillow_ms(contents, lambda picture: picture.load()):.2f}")
    for side in (256, 384, 512):
        cost = pillow_ms(contents, lambda picture, side=side: picture.resize((side * 4 // 3, side), 2))
        print(f"@decode and resize to short side {side}, Pillow|{cost:.2f}")
    cost = pillow_ms(contents, lambda picture: picture.resize((SIDE, SIDE), 2, box=(100, 50, 320, 270)))
    print(f"@decode and resize of a window of 220, Pillow|{cost:.2f}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
