r"""
Reverse sparsification
======================

Train with Monarch matrices for most of the time, multiply them out, and finish dense: the paper's way to a dense model
in less time. The switch changes nothing that the model computes, so the loss does not jump.

Here a network learns from a teacher that is dense, on synthetic data: what Monarch layers cannot express is left to the
last part.
"""

import copy
import math

import matplotlib.pyplot as plt
import torch
from torch import nn

from monarch_core import densify, monarchize, param_groups

torch.manual_seed(0)
width, steps, switch = 256, 500, 300


def network():
    return nn.Sequential(
        nn.Linear(64, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 16)
    )


teacher = network().requires_grad_(False)
for layer in teacher[::2]:
    layer.weight *= 3
x = torch.randn(8192, 64)
y = teacher(x)
y = (y - y.mean(0)) / y.std(0)


def train(model, first=0, last=steps):
    """Steps `first` to `last`, with a warm-up and a cosine of their own; the loss of each."""
    optimizer = torch.optim.AdamW(param_groups(model, lr=2e-3), betas=(0.9, 0.98))
    losses = []
    for step in range(first, last):
        done = (step - first) / (last - first)
        rate = min(1, (step - first + 1) / 20) * (1 + math.cos(math.pi * done)) / 2
        for group in optimizer.param_groups:
            group.setdefault("peak", group["lr"])
            group["lr"] = group["peak"] * rate
        chosen = torch.randint(len(x), (256,), generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        loss = (model(x[chosen]) - y[chosen]).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %%
# Three runs with the same data in the same order: dense, Monarch, and Monarch for 60 % of the steps, dense after.

dense = network()
monarch = copy.deepcopy(dense)
monarchize(monarch, blocks=4)
reverse = copy.deepcopy(monarch)

curves = {"dense": train(dense), "Monarch": train(monarch)}
begin = train(reverse, last=switch)
before = reverse(x[:100])
densify(reverse)
print(f"the switch changes the outputs by {(reverse(x[:100]) - before).abs().max().item():.1e}")
curves["Monarch, then dense"] = begin + train(reverse, first=switch)

# %%
# At the switch the loss goes on from where it was, and the dense layers then learn what the Monarch layers could not
# express. A teacher without structure is the hard case: nothing that Monarch layers miss can be left out.
# `lab.sparsify` does the same within a run of the harness, with the optimiser's state and schedule carried over;
# ``python -m text.train --setting reverse`` does it for a language model.

figure, panel = plt.subplots(figsize=(7, 3.4), layout="constrained")
for name, losses in curves.items():
    smooth = torch.tensor(losses).unfold(0, 10, 1).mean(1)
    panel.semilogy(range(9, steps), smooth, label=name)
panel.axvline(switch, color="black", linestyle=":", alpha=0.6)
panel.annotate("turned dense", (switch + 5, panel.get_ylim()[1] * 0.6))
panel.set(xlabel="step", ylabel="mean square error")
panel.legend()
plt.show()
