r"""
Projecting a dense matrix
=========================

The Monarch matrix nearest to a given one is known in closed form (Algorithm 1 of the paper): a Monarch matrix of rank r
has sub-blocks of rank r, so every sub-block is replaced by its truncated singular value decomposition. How much is lost
depends on the matrix.
"""

import matplotlib.pyplot as plt
import torch

from monarch_core import Monarch, dct, projection_report

torch.manual_seed(0)
n = 256
points = torch.linspace(0, 1, n)
distance = points[:, None] - points
matrices = {
    "cosine transform": dct(n, norm="ortho").to_dense().detach(),
    "Gaussian blur": torch.exp(-((distance / 0.02) ** 2)),
    "Cauchy kernel": 1 / (distance + 0.5 / n),
    "random": torch.randn(n, n) / n**0.5,
}

# %%
# `Monarch.from_dense` gives the nearest operator, `projection_report` says what was lost. With 16 blocks of rank r the
# projection has 2 x 16 x 256 r numbers, an eighth of the dense ones for each unit of rank.

ranks = range(1, 9)
errors = {}
for name, A in matrices.items():
    nearest = [Monarch.from_dense(A, blocks=16, rank=rank) for rank in ranks]
    errors[name] = [projection_report(A, *operator.factors()).relative_error for operator in nearest]
    print(f"{name:17} rank 1: {errors[name][0]:.3f}, rank 2: {errors[name][1]:.2g}")

# %%
# The cosine transform is a Monarch matrix of rank 2 up to the order of its rows and columns; in its plain order it is
# not. A smooth kernel, and a smooth kernel with a singularity, are nearly of low rank away from the diagonal; noise is
# nothing of the sort, and loses what counting parameters says.

shown = "Cauchy kernel"
A = matrices[shown]
nearest = Monarch.from_dense(A, blocks=16, rank=1).to_dense().detach()
limit = 60

figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
for panel, matrix, title in zip(axes, (A, nearest), (shown, "its projection, rank 1"), strict=False):
    panel.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit)
    panel.set(title=title, xticks=[], yticks=[])
    panel.grid(False)
for name, each in errors.items():
    axes[2].semilogy(ranks, [max(error, 1e-7) for error in each], marker="o", markersize=3, label=name)
axes[2].set(xlabel="rank of the sub-blocks", ylabel="relative error", xticks=ranks)
axes[2].legend()
plt.show()
