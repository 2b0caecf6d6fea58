"""`tf.contrib.tensorboard.plugins.projector`: the file that tells TensorBoard which variables are embeddings."""

from __future__ import annotations

import functools
import os
from typing import Any

from moxing.framework import file as mox_file

__all__ = ["visualize_embeddings"]

_FILE = "projector_config.pbtxt"
_STRING, _UINT32, _MESSAGE, _OPTIONAL, _REPEATED = 9, 13, 11, 1, 3
# Messages of the file: name, number, type and label of their fields.
_MESSAGES: dict[str, list[tuple[str, int, Any, int]]] = {
    "SpriteMetadata": [("image_path", 1, _STRING, _OPTIONAL), ("single_image_dim", 2, _UINT32, _REPEATED)],
    "EmbeddingInfo": [
        ("tensor_name", 1, _STRING, _OPTIONAL),
        ("metadata_path", 2, _STRING, _OPTIONAL),
        ("bookmarks_path", 3, _STRING, _OPTIONAL),
        ("tensor_shape", 4, _UINT32, _REPEATED),
        ("sprite", 5, "SpriteMetadata", _OPTIONAL),
        ("tensor_path", 6, _STRING, _OPTIONAL),
    ],
    "ProjectorConfig": [
        ("model_checkpoint_path", 1, _STRING, _OPTIONAL),
        ("embeddings", 2, "EmbeddingInfo", _REPEATED),
        ("model_checkpoint_dir", 3, _STRING, _OPTIONAL),
    ],
}


@functools.cache
def _messages() -> dict[str, Any]:
    """Makes the classes of the messages. TensorBoard has them too, but need not be installed."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    package = "moxing.projector"
    file = descriptor_pb2.FileDescriptorProto(name="moxing/projector.proto", package=package, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, label in fields:
            added = message.field.add(name=field, number=number, label=label)
            if isinstance(kind, str):
                added.type, added.type_name = _MESSAGE, f".{package}.{kind}"
            else:
                added.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in _MESSAGES
    }


def __getattr__(name: str) -> Any:
    if name not in _MESSAGES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _messages()[name]


def visualize_embeddings(summary_writer: Any, config: Any) -> None:
    """Writes `projector_config.pbtxt` into the directory of the event files.

    Args:
      summary_writer: a `tf.summary.FileWriter`, or the directory.
      config: a `ProjectorConfig`.

    Raises:
      ValueError: the writer has no directory.
    """
    from google.protobuf import text_format

    directory = summary_writer if isinstance(summary_writer, str) else summary_writer.get_logdir()
    if directory is None:
        raise ValueError("visualize_embeddings: the summary writer has no directory.")
    name = os.fsdecode(directory)
    path = f"{name.rstrip('/')}/{_FILE}" if "://" in name else os.path.join(name, _FILE)
    with mox_file.File(path, "w") as stream:
        stream.write(text_format.MessageToString(config))
