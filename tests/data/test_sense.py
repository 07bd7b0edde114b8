"""The SENSE operators against their definition, sigpy and BART."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from data.scans import sense
from data.scans.sense import Sense

TOLERANCE = {torch.complex128: 1e-13, torch.complex64: 1e-5}
GRIDS = [(8, 6), (7, 10), (5, 9)]


def random(*shape: int, dtype: torch.dtype = torch.complex128) -> Tensor:
    return torch.randn(*shape, dtype=dtype)


def relative(a: Tensor, b: Tensor) -> float:
    return ((a - b).norm() / b.norm()).item()


def problem(grid: tuple[int, int], coils: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    """An image, coil maps, and a mask that is not symmetric."""
    return random(*grid), random(coils, *grid), torch.rand(*grid) < 0.6


def centred_dft_matrix(n: int) -> Tensor:
    index = torch.arange(n, dtype=torch.float64) - n // 2
    return torch.exp(-2j * torch.pi * index[:, None] * index[None, :] / n) / n**0.5


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_transform_is_the_centred_orthonormal_dft(grid: tuple[int, int], dtype: torch.dtype) -> None:
    image = random(2, *grid, dtype=dtype)
    rows, columns = (centred_dft_matrix(n).to(dtype) for n in grid)
    assert relative(sense.fft2c(image), rows @ image @ columns.T) < TOLERANCE[dtype]
    assert relative(sense.ifft2c(image), rows.conj() @ image @ columns.conj().T) < TOLERANCE[dtype]


@pytest.mark.parametrize("grid", GRIDS)
def test_transforms_without_shifts_are_those_with_shifts(grid: tuple[int, int]) -> None:
    for x in (random(2, *grid), torch.randn(*grid, dtype=torch.float64)):
        for ours, theirs in ((sense.fft2c, torch.fft.fft2), (sense.ifft2c, torch.fft.ifft2)):
            shifted = torch.fft.ifftshift(x, dim=(-2, -1))
            expected = torch.fft.fftshift(theirs(shifted, norm="ortho"), dim=(-2, -1))
            assert relative(ours(x), expected) < 1e-14


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_sense_is_its_definition(grid: tuple[int, int], dtype: torch.dtype) -> None:
    """M F (S_c x) with the DFT as a matrix, for sides that are even and odd, of full and of weighted sampling."""
    image, maps, mask = problem(grid)
    rows, columns = (centred_dft_matrix(n) for n in grid)
    for weights in (None, mask, torch.rand(*grid, dtype=torch.float64)):
        operator = Sense(maps.to(dtype), weights)
        expected = (1 if weights is None else weights) * (rows @ (maps * image) @ columns.T)
        assert relative(operator(image.to(dtype)), expected) < TOLERANCE[dtype]


@pytest.mark.parametrize("grid", GRIDS)
def test_adjoint_passes_the_dot_test(grid: tuple[int, int]) -> None:
    image, maps, mask = problem(grid)
    kspace = random(*maps.shape)
    operator = Sense(maps, mask)
    left = torch.vdot(kspace.flatten(), operator(image).flatten())
    for adjoint in (operator.adjoint, operator.H):
        right = torch.vdot(adjoint(kspace).flatten(), image.flatten())
        assert abs(left - right) < 1e-12 * abs(left)


@pytest.mark.parametrize("grid", GRIDS)
def test_normal_operator_is_the_product_with_the_adjoint(grid: tuple[int, int]) -> None:
    image, maps, _ = problem(grid)
    operator = Sense(maps, torch.rand(*grid))
    assert relative(operator.normal(image), (operator.H @ operator)(image)) < 1e-13


def test_gradients_reach_image_maps_and_weights() -> None:
    image, maps, _ = problem((4, 3), coils=2)
    inputs = [one.requires_grad_() for one in (image, maps, torch.rand(4, 3, dtype=torch.float64))]

    def there_and_back(image: Tensor, maps: Tensor, weights: Tensor) -> Tensor:
        operator = Sense(maps, weights)
        return torch.view_as_real(operator.adjoint(operator(image)))

    assert torch.autograd.gradcheck(there_and_back, inputs)


def test_an_operator_first_used_for_inference_can_train() -> None:
    """The phases are kept from one operator to the next, and inference tensors cannot be saved for a gradient."""
    maps = random(2, 9, 11)
    with torch.inference_mode():
        Sense(maps)(random(9, 11))
    image = random(9, 11).requires_grad_()
    Sense(maps)(image).abs().sum().backward()
    assert image.grad is not None


def test_shapes_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match=r"should end in .*8.*6.*but its shape is \(6, 8\)"):
        Sense(random(3, 8, 6))(random(6, 8))


def test_full_sampling_with_normalised_maps_gives_the_image_back() -> None:
    image, maps, _ = problem((8, 6))
    maps = maps / maps.abs().square().sum(0).sqrt()
    assert relative(Sense(maps).adjoint(Sense(maps)(image)), image) < 1e-13


def test_batches_with_a_mask_each_equal_single_problems() -> None:
    image, maps, mask = random(4, 8, 6), random(4, 3, 8, 6), torch.rand(4, 8, 6) < 0.5
    kspace = Sense(maps, mask)(image)
    images = Sense(maps, mask).adjoint(kspace)
    for i in range(4):
        assert relative(kspace[i], Sense(maps[i], mask[i])(image[i])) < 1e-13
        assert relative(images[i], Sense(maps[i], mask[i]).adjoint(kspace[i])) < 1e-13


def test_zero_padding_keeps_the_zero_frequency() -> None:
    """Padding k-space samples the same band-limited image more finely: means agree, whatever the parity."""
    for inner, outer in [((8, 6), (12, 10)), ((7, 6), (12, 9)), ((5, 8), (9, 11))]:
        kspace, padded = random(*inner), torch.zeros(*outer, dtype=torch.complex128)
        padded[..., sense.centre(inner[0], outer[0]), sense.centre(inner[1], outer[1])] = kspace
        means = [sense.ifft2c(k).mean() * k.numel() ** 0.5 for k in (kspace, padded)]
        assert abs(means[0] - means[1]) < 1e-12
    with pytest.raises(ValueError, match="does not fit"):
        sense.centre(9, 8)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_operators_agree_with_sigpy(grid: tuple[int, int], dtype: torch.dtype) -> None:
    linop = pytest.importorskip("sigpy.mri.linop")
    image, maps, mask = problem(grid)
    image, maps = image.to(dtype), maps.to(dtype)
    reference = linop.Sense(maps.numpy(), weights=mask.numpy().astype(float))
    kspace = Sense(maps, mask)(image)
    assert relative(kspace, torch.from_numpy(reference * image.numpy())) < 1e-5
    assert relative(Sense(maps, mask).adjoint(kspace), torch.from_numpy(reference.H * kspace.numpy())) < 1e-5


class Bart:
    """BART commands on arrays whose axes are (x, y, z, coils)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *command: str, **arrays: np.ndarray) -> np.ndarray:
        for name, array in arrays.items():
            (self.folder / f"{name}.hdr").write_text(
                "# Dimensions\n" + " ".join(map(str, array.shape)) + "\n"
            )
            array.astype(np.complex64).T.tofile(self.folder / f"{name}.cfl")
        subprocess.run(["bart", *command, "out"], cwd=self.folder, check=True, capture_output=True)
        shape = [int(n) for n in (self.folder / "out.hdr").read_text().splitlines()[1].split()]
        return np.fromfile(self.folder / "out.cfl", np.complex64).reshape(shape[::-1]).T.squeeze()


@pytest.fixture
def bart(tmp_path: Path) -> Bart:
    if shutil.which("bart") is None:
        pytest.skip("BART is not installed (Debian package bart)")
    return Bart(tmp_path)


def test_transform_is_the_unitary_fft_of_bart(bart: Bart) -> None:
    for grid in GRIDS:
        image = random(*grid)
        for flags, ours in (("-u", sense.fft2c), ("-ui", sense.ifft2c)):
            theirs = bart("fft", flags, "3", "image", image=image.numpy())
            assert relative(torch.from_numpy(theirs).to(image.dtype), ours(image)) < 1e-5


def test_bart_pics_inverts_our_forward_operator(bart: Bart) -> None:
    """Least squares in BART's SENSE model on k-space made by ours returns the image: same maps, scale and centre."""
    grid = (32, 24)
    image, maps, mask = problem(grid, coils=6)
    maps = maps / maps.abs().square().sum(0).sqrt()
    arrays = {
        "kspace": Sense(maps, mask)(image).permute(1, 2, 0).unsqueeze(2).numpy(),
        "maps": maps.permute(1, 2, 0).unsqueeze(2).numpy(),
        "pattern": mask.numpy(),
    }
    options = ["-l2", "-r0", "-w1", "-i300", "-ppattern"]
    solved = bart("pics", *options, "kspace", "maps", **arrays)
    assert relative(torch.from_numpy(solved).to(image.dtype), image) < 1e-3
