"""PyTorch: `DistributedDataParallel` over gloo, eager."""

from __future__ import annotations

import os

import torch
from common import CLASSES, DENSE, LEARNING_RATE, MULTIPLIER, SIDE, measure, task
from torch import distributed, nn

#: Depth and stride of each depthwise and pointwise pair, as in the zoo's MobileNet.
PAIRS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))


def conv(inputs: int, depth: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    """Convolution, batch normalisation, activation."""
    convolution = nn.Conv2d(inputs, depth, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [convolution, nn.BatchNorm2d(depth), nn.ReLU6(inplace=True)]


def mobilenet() -> nn.Module:
    channels = int(32 * MULTIPLIER)
    layers = conv(3, channels, 3, 2)
    for depth, stride in PAIRS:
        layers += conv(channels, channels, 3, stride, groups=channels)
        layers += conv(channels, channels := int(depth * MULTIPLIER), 1)
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.001), nn.Linear(channels, CLASSES)]
    return nn.Sequential(*layers, *head)


def dense() -> nn.Module:
    layers: list[nn.Module] = []
    for inputs, depth in zip(DENSE, DENSE[1:], strict=False):
        layers += [nn.Linear(inputs, depth), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers[:-1])


def main() -> None:
    wanted = task()
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    distributed.init_process_group("gloo")
    if wanted.model == "dense":
        net, samples = dense(), torch.rand(wanted.batch, DENSE[0]) * 2 - 1
    else:
        net = mobilenet().to(memory_format=torch.channels_last)
        samples = torch.rand(wanted.batch, 3, SIDE, SIDE) * 2 - 1
        samples = samples.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(CLASSES, [wanted.batch])
    parameters = sum(parameter.numel() for parameter in net.parameters())
    # The other programs do not synchronize moving averages of batch normalization either.
    parallel = nn.parallel.DistributedDataParallel(net, broadcast_buffers=False, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(parallel.parameters(), LEARNING_RATE)
    loss_function = nn.CrossEntropyLoss()

    def run_steps(steps: int) -> float:
        for _ in range(steps):
            optimizer.zero_grad()
            loss = loss_function(parallel(samples), labels)
            loss.backward()
            optimizer.step()
        return loss.item()

    measure(run_steps, wanted, parameters)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
