"""Prints the class of photos, with the exported model alone. Also runs as `python predict.py`.

moxing run predict.py --model_dir log/export/servo photo.jpg another.png
"""

import argparse
import io
import os
import sys

import tensorflow.compat.v1 as tf
from PIL import Image, UnidentifiedImageError

#: What the exported model decodes itself; other formats are converted here.
_FORMATS = ("JPEG", "PNG", "GIF", "BMP")


def newest_version(model_dir):
    """Returns the directory of the SavedModel: `model_dir` itself or its newest numbered version."""
    if os.path.isfile(os.path.join(model_dir, "saved_model.pb")):
        return model_dir
    names = os.listdir(model_dir) if os.path.isdir(model_dir) else []
    versions = [int(name) for name in names if name.isdecimal()]
    if not versions:
        raise ValueError(f"--model_dir={model_dir}: there is no exported model. Run export.py first.")
    return os.path.join(model_dir, str(max(versions)))


def read_labels(model_dir):
    """Returns the names of the classes, which were exported with the model."""
    path = os.path.join(model_dir, "assets.extra", "labels.txt")
    with open(path, encoding="utf-8") as lines:
        return [line.partition(":")[2].strip() for line in lines if line.strip()]


def read_photo(path):
    """Returns the bytes of a photo in a format that the model decodes."""
    try:
        with Image.open(path) as image:
            image.load()  # finds files that are cut off
            if image.format in _FORMATS:
                with open(path, "rb") as file:
                    return file.read()
            converted = io.BytesIO()
            image.convert("RGB").save(converted, "PNG")
            return converted.getvalue()
    except UnidentifiedImageError:
        raise ValueError(f"{path} is not an image.") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}.") from None


def predict(model_dir, photos):
    """Yields the probabilities of the classes for each photo.

    Args:
      model_dir: the directory of the SavedModel.
      photos: the encoded photos.
    """
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.loader.load(session, ["serve"], model_dir).signature_def["serving_default"]
        fed, fetched = signature.inputs["image_bytes"].name, signature.outputs["probabilities"].name
        for photo in photos:
            yield session.run(fetched, {fed: [photo]})[0]


def main():
    parser = argparse.ArgumentParser(description="Prints the class of photos.")
    parser.add_argument("--model_dir", required=True, help="an exported model, or the directory of its versions")
    parser.add_argument("photos", nargs="+", metavar="PHOTO")
    options = parser.parse_args()
    try:
        model_dir = newest_version(options.model_dir)
        labels = read_labels(model_dir)
        photos = [read_photo(path) for path in options.photos]
    except (ValueError, OSError) as error:
        print(f"predict.py: error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    for path, probabilities in zip(options.photos, predict(model_dir, photos), strict=True):
        best = probabilities.argmax()
        print(f"{path}: {labels[best]} {probabilities[best]:.1%}")


if __name__ == "__main__":
    main()
