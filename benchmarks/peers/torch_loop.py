"""A plain PyTorch loop on tensors in memory."""

import torch
from common import BATCH, arguments, digits, serve, timed

_, count = arguments()
x, y = map(torch.from_numpy, digits())
model = torch.nn.Linear(784, 10)
optimizer = torch.optim.SGD(model.parameters(), 0.5)
loss_function = torch.nn.CrossEntropyLoss()


def run_steps() -> None:
    order = torch.randperm(len(x))
    for step in range(count):
        chosen = order[step * BATCH % len(x) :][:BATCH]
        loss = loss_function(model(x[chosen]), y[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            loss.item()


serve(lambda: timed(run_steps, count))
