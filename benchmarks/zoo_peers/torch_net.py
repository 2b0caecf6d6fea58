"""PyTorch, eager, channels last."""

from __future__ import annotations

import torch
from common import CLASSES, LEARNING_RATE, MOMENTUM, SIZES, arguments, report
from torch import nn
from torch_nets import NETS


def multiply_adds(net: nn.Module, size: int) -> int:
    """Return the number of multiply-adds for one image. This first image also sets the shapes of the layers."""
    counts = []

    def count(layer: nn.Module, _, output: torch.Tensor) -> None:
        counts.append(output.numel() * layer.weight[0].numel())

    layers = [layer for layer in net.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
    handles = [layer.register_forward_hook(count) for layer in layers]
    with torch.no_grad():
        net.eval()(torch.zeros(1, 3, size, size))
    for handle in handles:
        handle.remove()
    return sum(counts)


def main() -> None:
    (name, what), options = arguments()
    batch, size = options["batch"], SIZES[name]
    torch.set_num_threads(options["threads"])
    net = NETS[name](CLASSES)
    work = multiply_adds(net, size)
    net = net.to(memory_format=torch.channels_last).train(what == "train")
    images = (torch.rand(batch, 3, size, size) * 2 - 1).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(CLASSES, [batch])
    trained = [parameter for parameter in net.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(trained, LEARNING_RATE, MOMENTUM)
    loss_function = nn.CrossEntropyLoss()

    def train_steps(steps: int) -> float:
        for _ in range(steps):
            optimizer.zero_grad()
            loss = loss_function(net(images), labels)
            loss.backward()
            optimizer.step()
        return loss.item()

    @torch.inference_mode()
    def inference_steps(steps: int) -> float:
        for _ in range(steps):
            logits = net(images)
        return logits.sum().item()

    run_steps = train_steps if what == "train" else inference_steps
    report(run_steps, batch, options["steps"], sum(parameter.numel() for parameter in trained), work)


if __name__ == "__main__":
    main()
