"""Creates the images of the input benchmark once, from real photos: one folder per class.

DATA/jpeg/CLASS/*.jpg      about 500 x 375, quality 90, 4:2:0
DATA/tfrecord/             the same files in 8 shards of TF-Slim's layout, and labels.txt
DATA/decoded/CLASS/*.raw   the same images decoded: height and width (int32 each), then the pixels
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = ["daisy", "dandelion", "roses", "sunflowers", "tulips"]
COUNT = 2048  # a multiple of 64: an epoch ends at the end of a batch
SHARDS = 8
PHOTOS = Path(__file__).parents[3] / "shared" / "data" / "flowers"


def photos(name: str) -> list[Image.Image]:
    """Return real photos of a class, or scikit-learn's two photos if the folder does not exist."""
    if PHOTOS.is_dir():
        return [Image.open(path).convert("RGB") for path in sorted((PHOTOS / name).glob("*.jpg"))]
    from sklearn.datasets import load_sample_images

    return [Image.fromarray(picture) for picture in load_sample_images().images]


def variation(photo: Image.Image, random: np.random.RandomState) -> Image.Image:
    """Return a variation of a photo: slightly rotated, cropped, possibly flipped, about 500 x 375."""
    width, height = 500 + random.randint(-16, 17), 375 + random.randint(-12, 13)
    photo = photo.rotate(random.uniform(-4, 4), Image.Resampling.BICUBIC)
    # Crop inside the rotated frame: black corners would be cheap to decode.
    side = min(photo.width / width, photo.height / height) * random.uniform(0.75, 0.88)
    left = (photo.width - side * width) * random.uniform(0.4, 0.6)
    top = (photo.height - side * height) * random.uniform(0.4, 0.6)
    photo = photo.resize(
        (width, height), Image.Resampling.LANCZOS, box=(left, top, left + side * width, top + side * height)
    )
    return photo.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if random.rand() < 0.5 else photo


def make_class(folder: Path, label: int) -> None:
    """Write all images of a class, as JPEG and decoded."""
    name = CLASSES[label]
    random = np.random.RandomState(label)
    originals = photos(name)
    for kind in ("jpeg", "decoded"):
        (folder / kind / name).mkdir(parents=True, exist_ok=True)
    for number in range(label, COUNT, len(CLASSES)):
        path = folder / "jpeg" / name / f"{number:05d}.jpg"
        variation(originals[random.randint(len(originals))], random).save(path, quality=90, subsampling="4:2:0")
        with Image.open(path) as picture:
            pixels = np.asarray(picture)
        with (folder / "decoded" / name / f"{number:05d}.raw").open("wb") as file:
            file.write(np.array(pixels.shape[:2], np.int32).tobytes() + pixels.tobytes())


def write_tfrecords(folder: Path) -> None:
    """Write the JPEG files into shards, in a fixed shuffled order, in TF-Slim's layout."""
    import tensorflow as tf

    def feature(value: bytes | int) -> tf.train.Feature:
        if isinstance(value, bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))

    target = folder / "tfrecord"
    target.mkdir(exist_ok=True)
    paths = sorted((folder / "jpeg").glob("*/*.jpg"))
    np.random.RandomState(0).shuffle(paths)
    for shard in range(SHARDS):
        name = target / f"flowers_train_{shard:05d}-of-{SHARDS:05d}.tfrecord"
        with tf.io.TFRecordWriter(str(name)) as writer:
            for path in paths[shard::SHARDS]:
                with Image.open(path) as picture:
                    width, height = picture.size
                fields = {
                    "image/encoded": path.read_bytes(),
                    "image/format": b"jpg",
                    "image/class/label": CLASSES.index(path.parent.name),
                    "image/height": height,
                    "image/width": width,
                }
                features = tf.train.Features(feature={key: feature(value) for key, value in fields.items()})
                writer.write(tf.train.Example(features=features).SerializeToString())
    (target / "labels.txt").write_text("".join(f"{label}:{name}\n" for label, name in enumerate(CLASSES)))


def make(folder: Path) -> None:
    """Create all files, unless the marker file exists."""
    marker = folder / "complete"
    if marker.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for made in [pool.submit(make_class, folder, label) for label in range(len(CLASSES))]:
            made.result()
    write_tfrecords(folder)
    marker.touch()


def into_page_cache(folder: Path) -> None:
    """Read every file once, so that no program is measured with a cold disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            path.read_bytes()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
    into_page_cache(Path(sys.argv[1]))
