"""A plain PyTorch loop on tensors in memory."""

import torch
from common import BATCH, arguments, digits, report

_, count = arguments()
x, y = map(torch.from_numpy, digits())
model = torch.nn.Linear(784, 10)
optimizer = torch.optim.SGD(model.parameters(), 0.5)
loss_function = torch.nn.CrossEntropyLoss()


def run_steps(steps: int) -> None:
    per_epoch = len(x) // BATCH
    for step in range(steps):
        if step % per_epoch == 0:
            order = torch.randperm(len(x))
        chosen = order[step % per_epoch * BATCH :][:BATCH]
        loss = loss_function(model(x[chosen]), y[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            loss.item()


report(run_steps, count)
