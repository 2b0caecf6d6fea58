"""PyTorch's DataLoader over Pillow, with one worker per core. Argument: `textbook` or `fused`."""

from __future__ import annotations

import os
from collections.abc import Iterator

import torch
from common import BATCH, SIDE, arguments, listing, report
from pil_image import sample
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, samples: list[tuple[str, int]], fused: bool) -> None:
        self._samples = samples
        self._fused = fused

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path, label = self._samples[index]
        picture = torch.empty(SIDE, SIDE, 3)
        sample(path, self._fused, picture.numpy())
        return picture, label


def endless(loader: DataLoader) -> Iterator:
    while True:
        yield from loader


def main() -> None:
    (style, *_), folder, images = arguments()
    pictures = Pictures(list(zip(*listing(folder, "jpeg"), strict=True)), style == "fused")
    loader = DataLoader(
        pictures, BATCH, shuffle=True, num_workers=os.cpu_count() or 1, drop_last=True, persistent_workers=True
    )
    report(endless(loader), images)


if __name__ == "__main__":
    main()
