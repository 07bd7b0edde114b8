r"""
MM* factorisation
=================

Products of a Monarch matrix and the adjoint of another, the class MM*, contain convolutions and much else. Given such a
matrix as a plain table of numbers, Algorithm 2 of the paper finds its three block-diagonal factors,

    M = (Pᵀ L₁ P) R (Pᵀ L₂ P).

The paper describes the algorithm and released no code for it; `factorize` is an open implementation. A real matrix gets
real factors where it has them.
"""

import matplotlib.pyplot as plt
import torch

from monarch_core import factorize, mm_star

torch.manual_seed(0)
n, block_size = 64, 8
hidden = mm_star(n, block_size=block_size, dtype=torch.float64)
M = hidden.to_dense().detach()
found = factorize(M, block_size=block_size)
error = (found.to_dense() - M).norm() / M.norm()
print(f"{M.numel()} numbers as {found.num_parameters}; relative error {error.item():.1e}")

# %%
# A matrix that was measured has noise, and is in the class only nearly. `factorize` refuses one whose best factors
# leave more than the tolerance, by default the root of the precision. How sensitive is it? The factors hang on
# eigenvectors that many matrices must have in common, and noise in those is amplified, here about a hundred times: the
# algorithm is for matrices that are known well. For others there is projection, which is always stable.

levels = torch.logspace(-10, -5, 6)
given, found_again = [], []
for level in levels:
    noisy = M + level * M.std() * torch.randn_like(M)
    answer = factorize(noisy, block_size=block_size, tolerance=1.0).to_dense().detach()
    given.append(((noisy - M).norm() / M.norm()).item())
    found_again.append(((answer - M).norm() / M.norm()).item())

# %%
# The factors, drawn as the block-diagonal matrices that they are.

L1, R, L2 = (torch.block_diag(*factor.detach()) for factor in found.factors())
figure, axes = plt.subplots(1, 5, figsize=(13, 2.8), layout="constrained", width_ratios=(1, 1, 1, 1, 1.2))
for panel, matrix, title in zip(axes, (M, L1, R, L2), ("M", "$L_1$", "R", "$L_2$"), strict=False):
    limit = matrix[matrix != 0].abs().quantile(0.98)
    panel.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit)
    panel.set(title=title, xticks=[], yticks=[])
    panel.grid(False)
axes[4].loglog(given, given, color="black", alpha=0.4, label="noise of the matrix")
axes[4].loglog(given, found_again, marker="o", markersize=3, label="error of the factors' product")
axes[4].set(xlabel="relative noise", ylabel="error against the clean M")
axes[4].legend()
plt.show()
