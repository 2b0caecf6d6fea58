"""Train a network of the model zoo on a folder of images, evaluate it and export it.

Shows `mox.ImageClassificationRawMetadata` and `Dataset`, `mox.get_model_fn`, data augmentation, and the export of a
SavedModel. The program draws its own images (three classes of shapes), so it needs no download. For your own data,
point `--data_url` to a directory with the folders `train` and `eval`, each with one folder of images per class:
`train/cat/1.jpg`, `train/dog/1.jpg`, `eval/cat/7.jpg` and so on.

Run it:

    moxing run examples/classify_folder.py --data_url=shapes --train_url=shapes_log
"""

import os
import random

import tensorflow as tf
from PIL import Image, ImageDraw

import moxing.tensorflow as mox

tf.flags.DEFINE_string("data_url", "shapes", "Directory with train/<class> and eval/<class>; drawn if empty or absent")
tf.flags.DEFINE_string("train_url", "shapes_log", "Directory for checkpoints, summaries and the exported model")
tf.flags.DEFINE_integer("max_steps", 60, "Training steps")
flags = tf.flags.FLAGS

BATCH_SIZE = 16
IMAGE_SIZE = 28


def draw_shapes(directory, split, images_per_class, seed):
    """Write images of circles, squares and triangles to directory/split/<class>/<number>.png."""
    random.seed(seed)
    for shape in ("circle", "square", "triangle"):
        folder = os.path.join(directory, split, shape)
        os.makedirs(folder)
        for number in range(images_per_class):
            image = Image.new("RGB", (32, 32), "black")
            pen = ImageDraw.Draw(image)
            x, y, r = random.randint(13, 19), random.randint(13, 19), random.randint(8, 11)
            colour = tuple(random.randint(150, 255) for _ in range(3))
            if shape == "circle":
                pen.ellipse((x - r, y - r, x + r, y + r), fill=colour)
            elif shape == "square":
                pen.rectangle((x - r, y - r, x + r, y + r), fill=colour)
            else:
                pen.polygon([(x, y - r), (x - r, y + r), (x + r, y + r)], fill=colour)
            image.save(os.path.join(folder, "%d.png" % number))


def make_input_fn(metadata):
    def input_fn(mode, **kwargs):
        training = mode == mox.ModeKeys.TRAIN
        dataset = mox.ImageClassificationRawDataset(
            metadata,
            shuffle=training,
            num_epochs=None if training else 1,
            augmentation_fn=mox.get_data_augmentation_fn(
                "lenet", mode, output_height=IMAGE_SIZE, output_width=IMAGE_SIZE
            ),
        )
        return dataset.get(["image", "label"])

    return input_fn


def make_model_fn(num_classes):
    def model_fn(inputs, mode, **kwargs):
        images, labels = inputs
        network = mox.get_model_fn("lenet", run_mode=mode, num_classes=num_classes)
        logits, _ = network(images)
        predicted = tf.argmax(logits, axis=1)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        accuracy = tf.reduce_mean(tf.cast(tf.equal(predicted, labels), tf.float32))
        return mox.ModelSpec(
            loss=loss,
            log_info={"loss": loss, "accuracy": accuracy},
            export_spec=mox.ExportSpec(
                inputs_dict={"images": images},
                outputs_dict={"class": predicted, "probabilities": tf.nn.softmax(logits)},
            ),
        )

    return model_fn


def main(_):
    if not os.path.isdir(flags.data_url) or not os.listdir(flags.data_url):
        draw_shapes(flags.data_url, "train", images_per_class=40, seed=1)
        draw_shapes(flags.data_url, "eval", images_per_class=10, seed=2)

    # Metadata only lists files. It builds no graph, so it can be made outside of input_fn.
    train = mox.ImageClassificationRawMetadata(os.path.join(flags.data_url, "train"))
    evaluation = mox.ImageClassificationRawMetadata(os.path.join(flags.data_url, "eval"))
    model_fn = make_model_fn(train.num_classes)

    tf.set_random_seed(1)
    mox.run(
        input_fn=make_input_fn(train),
        model_fn=model_fn,
        optimizer_fn=mox.get_optimizer_fn("adam", learning_rate=0.001),
        run_mode=mox.ModeKeys.TRAIN,
        batch_size=BATCH_SIZE,
        log_dir=flags.train_url,
        max_number_of_steps=flags.max_steps,
        log_every_n_steps=10,
    )
    result = mox.run(
        input_fn=make_input_fn(evaluation),
        model_fn=model_fn,
        run_mode=mox.ModeKeys.EVAL,
        batch_size=BATCH_SIZE,
        log_dir=flags.train_url,
        max_number_of_steps=1000,  # EVAL ends earlier, at the end of the data.
        export_model=mox.ExportKeys.TF_SERVING,
    )
    print("accuracy on %d new images: %.2f" % (result.samples, result.log_info["accuracy"]))
    print("exported model: %s" % result.export_path)


if __name__ == "__main__":
    tf.app.run()
