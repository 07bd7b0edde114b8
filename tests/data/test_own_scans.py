"""Own scans: each format written by somebody else, read to the same numbers; what is wrong gets a sentence."""

import json
import pickle
import shutil
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from scipy.io import savemat

from data.scans.espirit import Espirit, MapEstimator
from data.scans.info import info
from data.scans.options import InfoConfig, ShowConfig
from data.scans.own import bart
from data.scans.own.store import kept
from data.scans.reader import load_scans, open_scan
from data.scans.sampling import Sampling
from data.scans.sense import Sense, centre
from data.scans.show import show
from lab import memory
from lab.errors import UserError
from tests.data import own_files as own
from tests.data.mri_files import skm_tea_scan
from tests.data.own_files import COILS, PLANE

FULL = own.kspace()
SMALL = (16, 12)
"""Writing a line of ISMRMRD takes a while, and a 3-D scan has many."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MONARCH_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


def mrd_lines(kspace: np.ndarray, mask: np.ndarray | None = None, **idx: int) -> list[object]:
    """Acquisitions of (slices, coils, readout, phase 1), the readout oversampled twice, slices 5 mm apart."""
    images = np.fft.fftshift(np.fft.ifft(np.fft.ifftshift(kspace, axes=-2), axis=-2, norm="ortho"), axes=-2)
    raw = own.centred_fft(own.oversampled(images, -2), axes=(-2,))
    return [
        own.acquisition(raw[s, :, :, y], position=(0, 0, 5 * s), slice=s, kspace_encode_step_1=y, **idx)
        for s in range(len(raw))
        for y in range(raw.shape[-1])
        if mask is None or mask[0, y]
    ]


def as_numpy(folder: Path) -> Path:
    np.save(folder / "a.npy", FULL)
    return folder / "a.npy"


def as_npz(folder: Path) -> Path:
    np.savez(folder / "a.npz", kspace=FULL, te=np.arange(3.0))
    return folder / "a.npz"


def as_bart(folder: Path) -> Path:
    # readout, phase 1, coil (3), slice (13)
    array = FULL.transpose(2, 3, 1, 0)
    return own.write_cfl(folder / "a.cfl", array, (*PLANE, 1, COILS, *[1] * 9, 3))


def as_matlab(folder: Path) -> Path:
    savemat(folder / "a.mat", {"ksp": FULL.transpose(2, 3, 1, 0), "te": np.arange(3.0)}, do_compression=True)
    (folder / "a.json").write_text(json.dumps({"axes": ["ky", "kz", "coil", "slice"]}))
    return folder / "a.mat"


def as_matlab_73(folder: Path) -> Path:
    """By the layout of v7.3: axes turned around, complex numbers as two members, a first block of 512 bytes."""
    turned = FULL.transpose(2, 3, 1, 0).T  # MATLAB's (ky, kz, coil, slice)
    parts = np.zeros(turned.shape, [("real", "<f4"), ("imag", "<f4")])
    parts["real"], parts["imag"] = turned.real, turned.imag
    with h5py.File(folder / "a.mat", "w", userblock_size=512) as file:
        file["kspace"] = parts
        file["kspace"].attrs["MATLAB_class"] = np.bytes_("single")
    (folder / "a.json").write_text(json.dumps({"axes": ["ky", "kz", "coil", "slice"]}))
    return folder / "a.mat"


def as_mrd(folder: Path) -> Path:
    return own.write_mrd(folder / "a.h5", own.xml(*PLANE, 1), mrd_lines(FULL))


WRITERS = {
    "NumPy": as_numpy,
    "npz": as_npz,
    "BART": as_bart,
    "MATLAB": as_matlab,
    "v7.3": as_matlab_73,
    "ISMRMRD": as_mrd,
}


@pytest.mark.parametrize("form", WRITERS)
def test_every_format_gives_the_same_slices(form: str, tmp_path: Path) -> None:
    scan = open_scan(WRITERS[form](tmp_path))
    assert scan.matrix_shape == (3, *PLANE)
    assert (scan.num_coils, scan.num_echoes, scan.undersampled) == (COILS, 1, False)
    for index in range(3):
        kspace, maps, target = scan.read(index, 0)
        torch.testing.assert_close(kspace, own.tensor(FULL[index]), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(target, Sense(maps).adjoint(kspace))
    again = pickle.loads(pickle.dumps(scan))
    assert torch.equal(again.read(1, 0)[0], scan.read(1, 0)[0])


def test_a_3d_scan_is_cut_along_its_readout(tmp_path: Path) -> None:
    """BART, NumPy and ISMRMRD, fully in k-space: each slice is a position along the readout."""
    images = own.phantom(8, SMALL)[:, None] * own.maps(SMALL)
    hybrid = own.centred_fft(images, axes=(-2, -1)).astype(np.complex64)
    full = own.centred_fft(images, axes=(0, 2, 3)).astype(np.complex64)  # (kx, coil, ky, kz)
    first = own.write_cfl(tmp_path / "b.cfl", full.transpose(0, 2, 3, 1), (8, *SMALL, COILS))
    np.save(tmp_path / "n.npy", full)
    (tmp_path / "n.json").write_text('{"axes": ["kx", "coil", "ky", "kz"], "voxel_spacing": [0.5, 1, 2]}')
    raw = own.centred_fft(own.oversampled(images, 0), axes=(0, 2, 3))
    lines = [
        own.acquisition(raw[:, :, y, z].T, kspace_encode_step_1=y, kspace_encode_step_2=z)
        for y in range(SMALL[0])
        for z in range(SMALL[1])
    ]
    third = own.write_mrd(tmp_path / "m.h5", own.xml(8, *SMALL), lines)
    for path in (first, tmp_path / "n.npy", third):
        scan = open_scan(path)
        assert scan.matrix_shape == (8, *SMALL)
        assert scan.three_dimensional
        torch.testing.assert_close(scan.read(5, 0)[0], own.tensor(hybrid[5]), rtol=1e-4, atol=1e-5)
    assert open_scan(tmp_path / "n.npy").voxel_spacing == (0.5, 1, 2)


@pytest.mark.skipif(shutil.which("bart") is None, reason="BART is not installed")
def test_bart_reads_what_is_written_and_the_other_way_round(tmp_path: Path) -> None:
    bart.write(tmp_path / "out.cfl", FULL[0].transpose(1, 2, 0), (*PLANE, 1, COILS))
    subprocess.run(["bart", "copy", tmp_path / "out", tmp_path / "again"], check=True)
    assert torch.equal(open_scan(tmp_path / "again").read(0, 0)[0], own.tensor(FULL[0]))


def test_single_slices_and_echoes_are_ordinary(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", FULL[0])
    assert open_scan(tmp_path / "one.npy").matrix_shape == (1, *PLANE)
    both = np.stack([FULL, 0.5 * FULL], axis=1)
    np.save(tmp_path / "two.npy", both)
    scan = open_scan(tmp_path / "two.npy")
    assert scan.num_echoes == 2
    assert torch.equal(scan.read(2, 1)[0], own.tensor(both[2, 1]))
    own.write_mrd(
        tmp_path / "two.h5", own.xml(*PLANE, 1), mrd_lines(FULL) + mrd_lines(0.5 * FULL, contrast=1)
    )
    torch.testing.assert_close(
        open_scan(tmp_path / "two.h5").read(2, 1)[0], own.tensor(both[2, 1]), rtol=1e-5, atol=1e-5
    )


# ---------------------------------------------------------------- maps


def test_given_maps_are_used(tmp_path: Path) -> None:
    true = np.broadcast_to(own.maps(), FULL.shape)
    np.save(tmp_path / "a.npy", FULL)
    np.save(tmp_path / "a_maps.npy", true)
    own.write_cfl(tmp_path / "b.cfl", FULL.transpose(2, 3, 1, 0), (*PLANE, 1, COILS, *[1] * 9, 3))
    own.write_cfl(tmp_path / "b_maps.cfl", true.transpose(2, 3, 1, 0), (*PLANE, 1, COILS, *[1] * 9, 3))
    savemat(tmp_path / "c.mat", {"kspace": FULL[0].transpose(1, 2, 0), "sens": true[0].transpose(1, 2, 0)})
    for name in ("a.npy", "b.cfl", "c.mat"):
        scan = open_scan(tmp_path / name)
        assert scan.maps_are == "given"
        assert torch.equal(scan.read(0, 0)[1], own.tensor(true[0]))
    np.save(tmp_path / "a_maps.npy", true[:2])
    with pytest.raises(
        UserError, match=r"a_maps.npy holds maps of shape \(2, 4, 48, 40\) where .* needs \(3, 4"
    ):
        open_scan(tmp_path / "a.npy")


def test_given_maps_of_any_scale_make_the_same_images(tmp_path: Path) -> None:
    """With relative maps, methods that solve for the image would otherwise miss the target."""
    few, unit = own.kspace(2, SMALL), np.stack([own.maps(SMALL)] * 2)
    unit[:, :, :3] = 0
    uneven = 5 * unit * np.linspace(0.5, 1.5, SMALL[1], dtype=np.float32)
    for name, maps in (("a", unit), ("b", uneven)):
        np.save(tmp_path / f"{name}.npy", few)
        np.save(tmp_path / f"{name}_maps.npy", maps)
    first, second = (open_scan(tmp_path / f"{name}.npy") for name in "ab")
    for one, other in zip(first.read(1, 0), second.read(1, 0), strict=True):
        torch.testing.assert_close(one, other)
    assert (first.maps_are, second.maps_are) == ("given", "given, divided by their root sum of squares")
    assert first.scale == pytest.approx(second.scale)


def test_given_maps_may_be_in_another_format_and_go_by_the_name_in_the_notes(tmp_path: Path) -> None:
    true = np.broadcast_to(own.maps(), FULL.shape)
    np.savez(tmp_path / "a.npz", kspace=FULL)
    np.save(tmp_path / "a_maps.npy", true)
    np.savez(tmp_path / "b.npz", kspace=FULL, sens=np.ones_like(FULL), better=true)
    (tmp_path / "b.json").write_text('{"maps": "better"}')
    np.savez(tmp_path / "c.npz", kspace=FULL, maps=np.ones_like(FULL))
    (tmp_path / "c.json").write_text('{"maps": "a_maps.npy"}')
    savemat(tmp_path / "d.mat", {"kspace": FULL.transpose(2, 3, 1, 0)})
    (tmp_path / "d.json").write_text('{"axes": ["ky", "kz", "coil", "slice"], "maps": "turned.npy"}')
    np.save(tmp_path / "turned.npy", true.transpose(2, 3, 1, 0))
    own.write_mrd(tmp_path / "e.h5", own.xml(*PLANE, 1), mrd_lines(FULL))
    (tmp_path / "e.json").write_text('{"maps": "a_maps.npy"}')
    for name in ("a.npz", "b.npz", "c.npz", "d.mat", "e.h5"):
        scan = open_scan(tmp_path / name)
        assert scan.maps_are == "given", name
        assert torch.equal(scan.read(0, 0)[1], own.tensor(true[0])), name
    (tmp_path / "e.json").write_text('{"maps": "nowhere.npy"}')
    with pytest.raises(UserError, match=r"e.json names the maps nowhere.npy, but there is no"):
        open_scan(tmp_path / "e.h5")


def test_maps_are_estimated_again_when_the_notes_change(tmp_path: Path) -> None:
    square = FULL[:1, :, 4:44]
    np.save(tmp_path / "a.npy", square)
    first = open_scan(tmp_path / "a.npy").read(0, 0)[1]
    (tmp_path / "a.json").write_text('{"axes": ["slice", "coil", "kz", "ky"]}')
    turned = open_scan(tmp_path / "a.npy").read(0, 0)[1]
    assert not torch.equal(turned, first)
    np.save(tmp_path / "b.npy", square.transpose(0, 1, 3, 2))
    torch.testing.assert_close(turned, open_scan(tmp_path / "b.npy").read(0, 0)[1])


def test_espirit_agrees_with_sigpy() -> None:
    """The same support, and in it the same vectors up to a phase, to single precision."""
    from sigpy.mri.app import EspiritCalib

    noisy = own.kspace(1, noise=5e-3)[0]
    theirs = own.tensor(EspiritCalib(noisy, show_pbar=False).run())
    region = own.tensor(noisy[:, centre(24, 48), centre(24, 40)])[None]
    full = MapEstimator(PLANE, Espirit(coarsest=PLANE))(region)[0]
    quick = MapEstimator(PLANE, Espirit(coarsest=(32, 32)))(region)[0]
    inside = theirs.abs().sum(0) > 0
    assert 0.2 < inside.float().mean() < 1
    for ours, differing, loss in ((full, 0.002, 1e-5), (quick, 0.02, 1e-3)):
        found = ours.abs().sum(0) > 0
        assert (found != inside).float().mean() <= differing
        both = found & inside
        overlap = (ours.conj() * theirs).sum(0).abs()[both]
        assert float(1 - overlap.min()) < loss
        torch.testing.assert_close(
            ours.abs().square().sum(0)[found], torch.ones(int(found.sum())), rtol=1e-4, atol=1e-4
        )


def test_slices_are_estimated_alike_alone_and_together() -> None:
    region = own.tensor(FULL[:, :, centre(24, 48), centre(24, 40)])
    together = MapEstimator(PLANE)(region)
    alone = torch.cat([MapEstimator(PLANE)(one[None]) for one in region])
    torch.testing.assert_close(together.abs(), alone.abs(), rtol=1e-3, atol=1e-4)
    many = torch.randn(1, 40, 12, 12, dtype=torch.complex64)  # more columns than rows: the other Gram matrix
    assert MapEstimator((16, 16), Espirit(crop=0))(many).isfinite().all()


def test_an_empty_slice_does_not_spoil_the_next() -> None:
    region = own.tensor(FULL[:, :, centre(24, 48), centre(24, 40)])
    region[1] = 0
    maps = MapEstimator(PLANE)(region)
    assert not maps[1].any()
    assert maps[2].abs().sum() > 0


# ---------------------------------------------------------------- sampling


def test_undersampling_is_recognised(tmp_path: Path) -> None:
    mask = own.lines()
    np.save(tmp_path / "a.npy", FULL * mask)
    scan = open_scan(tmp_path / "a.npy")
    assert scan.undersampled
    assert scan.sampling.calibration == (48, 16)
    assert scan.sampling.acceleration == pytest.approx(40 / mask[0].sum())
    estimated, full = scan.read(0, 0)[1], own.tensor(own.maps())
    inside = torch.from_numpy(np.abs(own.phantom(3)[0]) > 0.5)
    assert ((estimated.conj() * full).sum(0).abs()[inside]).min() > 0.98
    with pytest.raises(
        UserError, match=r"a.npy is undersampled, acceleration .* no target .*mri.reconstruct takes"
    ):
        load_scans(tmp_path, "train")


@pytest.mark.parametrize(
    ("mask", "grid", "calibration", "undersampled"),
    [
        (np.ones((8, 6), bool), (8, 6), (8, 6), False),
        (np.pad(np.ones((5, 4), bool), ((2, 1), (1, 1))), (5, 4), (5, 4), False),
        (np.eye(9, dtype=bool), (9, 9), (1, 1), True),
        (own.lines((32, 30), 2, 6), (32, 30), (32, 6), True),
    ],
)
def test_grid_calibration_and_acceleration_by_hand(mask, grid, calibration, undersampled) -> None:  # type: ignore[no-untyped-def]
    found = Sampling(mask)
    assert found.acquired_grid == grid
    assert found.calibration == calibration
    assert found.undersampled == undersampled
    assert found.acceleration == grid[0] * grid[1] / mask.sum()


def test_a_scan_is_undersampled_if_any_echo_is(tmp_path: Path) -> None:
    few = own.kspace(1, SMALL)
    np.save(tmp_path / "a.npy", np.stack([few, few * own.lines(SMALL, calibration=6)], axis=1))
    scan = open_scan(tmp_path / "a.npy")
    assert scan.undersampled
    np.testing.assert_array_equal(scan.sampling.mask, own.lines(SMALL, calibration=6))
    np.save(tmp_path / "b.npy", np.stack([few, 0 * few], axis=1))  # an echo that was not written says nothing
    assert not open_scan(tmp_path / "b.npy").undersampled


def test_an_ellipse_is_full_sampling() -> None:
    y, z = np.meshgrid(np.linspace(-1, 1, 64), np.linspace(-1, 1, 48), indexing="ij")
    assert not Sampling(y**2 + z**2 <= 1).undersampled


def test_without_calibration_maps_are_asked_for(tmp_path: Path) -> None:
    mask = np.zeros(PLANE, bool)
    mask[:, ::4] = True
    np.save(tmp_path / "a.npy", FULL * mask)
    scan = open_scan(tmp_path / "a.npy")
    with pytest.raises(UserError, match=r"centre of 24 x 1 is too small .* give maps with the scan"):
        scan.read(0, 0)


# ---------------------------------------------------------------- ISMRMRD


def test_noise_lines_whiten_the_coils(tmp_path: Path) -> None:
    import ismrmrd

    rng = np.random.default_rng(1)
    mix = rng.standard_normal((COILS, COILS)) + 1j * rng.standard_normal((COILS, COILS))
    white = rng.standard_normal((COILS, 20_000, 2)) @ [1, 1j] / np.sqrt(2)
    noise = own.acquisition((mix @ white)[:, :20_000], ismrmrd.ACQ_IS_NOISE_MEASUREMENT)
    mixed = np.einsum("dc,scyz->sdyz", mix, FULL)
    own.write_mrd(tmp_path / "a.h5", own.xml(*PLANE, 1), [noise, *mrd_lines(mixed)])
    scan = open_scan(tmp_path / "a.h5")
    found = np.stack([scan.kspace(index) for index in range(3)])
    # Whitened data are the original ones up to a unitary matrix of coils.
    gram = np.einsum("scyz,scyz->syz", found.conj(), found)
    np.testing.assert_allclose(gram, np.einsum("scyz,scyz->syz", FULL.conj(), FULL), rtol=0.05, atol=1e-5)


def test_noise_of_other_coils_and_single_slices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import ismrmrd

    lines = mrd_lines(own.kspace(1, SMALL))
    assert open_scan(own.write_mrd(tmp_path / "a.h5", own.xml(*SMALL, 1), lines)).num_slices == 1
    assert "counters" not in capsys.readouterr().out
    noise = own.acquisition(np.ones((COILS - 1, 500)), ismrmrd.ACQ_IS_NOISE_MEASUREMENT)
    with pytest.raises(UserError, match=r"its noise is of 3 coils, its image of 4; write the file again"):
        open_scan(own.write_mrd(tmp_path / "b.h5", own.xml(*SMALL, 1), [noise, *lines]))


def test_maps_of_the_measured_coils_are_whitened_as_their_kspace_is(tmp_path: Path) -> None:
    import ismrmrd

    few, rng = own.kspace(1, SMALL), np.random.default_rng(1)
    mix = rng.standard_normal((COILS, COILS)) + 1j * rng.standard_normal((COILS, COILS))
    white = rng.standard_normal((COILS, 2000, 2)) @ [1, 1j] / np.sqrt(2)
    noise = own.acquisition(mix @ white, ismrmrd.ACQ_IS_NOISE_MEASUREMENT)
    lines = mrd_lines(np.einsum("dc,scyz->sdyz", mix, few))
    path = own.write_mrd(tmp_path / "a.h5", own.xml(*SMALL, 1), [noise, *lines])
    np.save(tmp_path / "a_maps.npy", np.einsum("dc,cyz->dyz", mix, own.maps(SMALL))[None])
    kspace, maps, target = open_scan(path).read(0, 0)
    assert (Sense(maps)(target) - kspace).norm() < 0.05 * kspace.norm()


def test_calibration_lines_apart_from_the_image_make_the_maps(tmp_path: Path) -> None:
    import ismrmrd

    every = np.zeros(PLANE, bool)
    every[:, ::4] = True
    images = mrd_lines(FULL, every)
    apart = [line for line in mrd_lines(FULL) if 12 <= line.idx.kspace_encode_step_1 < 28]  # type: ignore[attr-defined]
    for line in apart:
        line.setFlag(ismrmrd.ACQ_IS_PARALLEL_CALIBRATION)  # type: ignore[attr-defined]
    own.write_mrd(tmp_path / "apart.h5", own.xml(*PLANE, 1, mode="separate"), [*apart, *images])
    scan = open_scan(tmp_path / "apart.h5")
    assert scan.sampling.acceleration == 4
    assert scan.maps_are == "by ESPIRiT from 24 x 16 samples of a calibration scan"
    inside = torch.from_numpy(np.abs(own.phantom(3)[0]) > 0.5)
    overlap = (scan.read(0, 0)[1].conj() * own.tensor(own.maps())).sum(0).abs()
    assert overlap[inside].min() > 0.98
    # Embedded calibration lines belong to the image, where those measured twice are averaged.
    own.write_mrd(tmp_path / "in.h5", own.xml(*PLANE, 1), [*apart, *images])
    scan = open_scan(tmp_path / "in.h5")
    assert scan.sampling.calibration == (48, 17)
    mask = every.copy()
    mask[:, 12:28] = True
    torch.testing.assert_close(scan.read(1, 0)[0], own.tensor(FULL[1] * mask), rtol=1e-5, atol=1e-5)


def test_reversed_lines_navigators_and_partial_echoes(tmp_path: Path) -> None:
    import ismrmrd

    lines = mrd_lines(FULL)
    turned = []
    for line in lines:
        back = own.acquisition(line.data[:, ::-1], ismrmrd.ACQ_IS_REVERSE, slice=line.idx.slice)  # type: ignore[attr-defined]
        back.idx.kspace_encode_step_1 = line.idx.kspace_encode_step_1  # type: ignore[attr-defined]
        turned.append(back)
    navigator = own.acquisition(np.ones((COILS, 96)), ismrmrd.ACQ_IS_NAVIGATION_DATA, kspace_encode_step_1=3)
    own.write_mrd(tmp_path / "a.h5", own.xml(*PLANE, 1), [navigator, *turned])
    torch.testing.assert_close(
        open_scan(tmp_path / "a.h5").read(1, 0)[0], own.tensor(FULL[1]), rtol=1e-5, atol=1e-5
    )
    short = []
    for line in lines:
        cut = own.acquisition(line.data[:, 20:], slice=line.idx.slice)  # type: ignore[attr-defined]
        cut.idx.kspace_encode_step_1, cut.center_sample = line.idx.kspace_encode_step_1, 28  # type: ignore[attr-defined]
        short.append(cut)
    own.write_mrd(tmp_path / "b.h5", own.xml(*PLANE, 1), short)
    scan = open_scan(tmp_path / "b.h5")
    found, whole = scan.kspace(1), FULL[1]
    assert np.linalg.norm((found - whole)[:, 12:]) < 0.1 * np.linalg.norm(whole[:, 12:])
    assert not found[:, :10].any()  # what was not measured does not count as sampled
    np.testing.assert_array_equal(scan.sampling.mask.all(1), np.arange(48) >= 10)


def test_geometry_of_the_lines_becomes_the_affine(tmp_path: Path) -> None:
    scan = open_scan(as_mrd(tmp_path))
    assert scan.voxel_spacing == (5, 1, 1)
    assert scan.timing == (25, 7.5, 30)
    # Slices run to the head, the readout to the left, phase 1 to the back; the middle voxel is at the position.
    np.testing.assert_allclose(scan.affine[:3, :3], [[0, -1, 0], [0, 0, -1], [5, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(scan.affine @ [1, 24, 20, 1], [0, 0, 5, 1], atol=1e-5)
    (tmp_path / "a.json").write_text('{"voxel_spacing": [4, 2, 3]}')
    np.testing.assert_allclose(
        open_scan(scan.path).affine[:3, :3], [[0, -2, 0], [0, 0, -3], [4, 0, 0]], atol=1e-6
    )
    (tmp_path / "a.json").write_text('{"orientation": ["RL", "IS", "AP"]}')
    np.testing.assert_allclose(
        open_scan(scan.path).affine[:3, :3], [[-5, 0, 0], [0, 0, -1], [0, 1, 0]], atol=1e-6
    )


def test_maps_beside_lines_may_be_barts_or_numpys(tmp_path: Path) -> None:
    few = own.kspace(2, SMALL)
    given = np.stack([own.maps(SMALL), 1j * own.maps(SMALL)])  # (slice, coil, ky, kz)
    path = own.write_mrd(tmp_path / "a.h5", own.xml(*SMALL, 1), mrd_lines(few))
    own.write_cfl(tmp_path / "a_maps.cfl", given.transpose(2, 3, 1, 0), (*SMALL, 1, COILS, *[1] * 9, 2))
    np.save(tmp_path / "sens.npy", -given)
    for factor in (1, -1):
        scan = open_scan(path)
        assert scan.maps_are == "given"
        torch.testing.assert_close(scan.read(1, 0)[1], own.tensor(factor * given[1]))
        (tmp_path / "a.json").write_text('{"maps": "sens.npy"}')


def test_notes_add_to_the_timing_of_a_header_and_correct_it(tmp_path: Path) -> None:
    path = own.write_mrd(tmp_path / "a.h5", own.xml(*SMALL, 1), mrd_lines(own.kspace(1, SMALL)))
    (tmp_path / "a.json").write_text('{"flip_degrees": 20}')
    assert open_scan(path).timing == (25, 7.5, 20)
    header = own.xml(*SMALL, 1).replace("<TE>7.5</TE>", "")
    path = own.write_mrd(tmp_path / "b.h5", header, mrd_lines(own.kspace(1, SMALL)))
    assert open_scan(path).timing is None
    (tmp_path / "b.json").write_text('{"echo_ms": 5}')
    assert open_scan(path).timing == (25, 5, 30)


def test_each_echo_has_the_time_that_the_header_gives(tmp_path: Path) -> None:
    few = own.kspace(1, SMALL)
    header = own.xml(*SMALL, 1).replace("<TE>7.5</TE>", "<TE>7.5</TE><TE>12</TE>")
    both = mrd_lines(few) + mrd_lines(few, contrast=1)
    scan = open_scan(own.write_mrd(tmp_path / "a.h5", header, both))
    assert [scan.echo_time(echo) for echo in range(2)] == [7.5, 12]
    scan = open_scan(own.write_mrd(tmp_path / "b.h5", own.xml(*SMALL, 1), both))
    assert [scan.echo_time(echo) for echo in range(2)] == [7.5, None]
    again = mrd_lines(few) + mrd_lines(few, repetition=1)
    scan = open_scan(own.write_mrd(tmp_path / "c.h5", header, again))
    assert [scan.echo_time(echo) for echo in range(2)] == [7.5, 7.5]


@pytest.mark.parametrize(
    ("places", "order", "apart"),
    [
        ((0, 2, 1), (0, 2, 1), 5),  # interleaved: counters follow the acquisition
        ((2, 0, 1), (1, 2, 0), 5),
        ((2, 1, 0), (0, 1, 2), 5),  # from head to foot is an order too
        ((0, 0, 0), (0, 1, 2), 4),  # the lines do not say where they lie: the header's thickness
    ],
)
def test_slices_lie_in_the_order_of_their_positions(
    places: tuple[int, ...],
    order: tuple[int, ...],
    apart: float,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    few = own.kspace(3, SMALL)
    lines = mrd_lines(few)
    for line in lines:
        line.position[2] = 5 * places[line.idx.slice]  # type: ignore[attr-defined]
    scan = open_scan(own.write_mrd(tmp_path / "a.h5", own.xml(*SMALL, 1), lines))
    assert scan.voxel_spacing[0] == apart
    for index, counter in enumerate(order):
        torch.testing.assert_close(
            own.tensor(scan.kspace(index)), own.tensor(few[counter]), rtol=1e-4, atol=1e-5
        )
        if any(places):
            np.testing.assert_allclose(
                scan.affine @ [index, 8, 6, 1], [0, 0, 5 * places[counter], 1], atol=1e-5
            )
    assert np.linalg.det(scan.affine) != 0
    assert ("not of their counters" in capsys.readouterr().out) == (order != (0, 1, 2))


# ---------------------------------------------------------------- mistakes


def broken(folder: Path, kind: str) -> Path:
    """A file that is wrong in one way."""
    path = folder / {"mat": "a.mat", "h5": "a.h5", "cfl": "a.cfl"}.get(kind.split()[0], "a.npy")
    if kind == "real":
        np.save(path, FULL.real)
    elif kind == "cut":
        np.save(path, FULL)
        path.write_bytes(path.read_bytes()[:-100])
    elif kind == "coils last":
        np.save(path, FULL[0].transpose(1, 2, 0))
    elif kind == "six axes":
        np.save(path, FULL[None, None])
    elif kind == "shifted":
        np.save(path, np.fft.ifftshift(FULL, axes=(-2, -1)))
    elif kind == "nan":
        np.save(path, FULL * np.nan)
    elif kind == "zero":
        np.save(path, 0 * FULL)
    elif kind == "notes":
        np.save(path, FULL)
        path.with_suffix(".json").write_text('{"axis": ["coil"]}')
    elif kind == "wrong axes":
        np.save(path, FULL)
        path.with_suffix(".json").write_text('{"axes": ["slice", "coil", "ky", "q"]}')
    elif kind == "mat cut":
        as_matlab(folder)
        path.write_bytes(path.read_bytes()[:3000])
    elif kind == "mat several":
        savemat(path, {"a": FULL[0], "b": FULL[1]})
    elif kind == "mat four":
        savemat(path, {"kspace": FULL})
    elif kind == "mat real":
        savemat(path, {"kspace": FULL[0].real.transpose(1, 2, 0)})
    elif kind == "cfl cut":
        as_bart(folder)
        path.write_bytes(path.read_bytes()[:-8])
    elif kind == "cfl header":
        as_bart(folder)
        path.with_suffix(".hdr").write_text("48 40\n")
    elif kind == "cfl alone":
        as_bart(folder)
        path.with_suffix(".hdr").unlink()
    elif kind == "cfl phases":
        own.write_cfl(path, FULL.transpose(2, 3, 1, 0), (*PLANE, 1, COILS, *[1] * 7, 3))
    elif kind == "h5 spiral":
        own.write_mrd(path, own.xml(*PLANE, 1).replace("cartesian", "spiral"), mrd_lines(FULL[:1]))
    elif kind == "h5 header":
        own.write_mrd(path, "<ismrmrdHeader/>", mrd_lines(FULL[:1]))
    elif kind == "h5 outside":
        own.write_mrd(path, own.xml(48, 20, 1), mrd_lines(FULL[:1]))
    elif kind == "h5 noise":
        lines = mrd_lines(FULL[:1])[:2]
        for line in lines:
            line.setFlag(19)  # type: ignore[attr-defined]
        own.write_mrd(path, own.xml(*PLANE, 1), lines)
    elif kind == "h5 two counters":
        lines = mrd_lines(FULL[:1]) + mrd_lines(FULL[:1], repetition=1) + mrd_lines(FULL[:1], contrast=1)
        own.write_mrd(path, own.xml(*PLANE, 1), lines)
    return path


SENTENCES = {
    "real": "holds float32, but k-space is complex",
    "cut": "is not a whole",
    "coils last": r"would be read as 48 coils and slices of 40 x 4 .*unlikely; write .*a.json",
    "six axes": r"shape \(1, 1, 3, 4, 48, 40\), whose axes it does not name; write",
    "shifted": "largest in a corner.*fftshift",
    "nan": "NaN or infinity",
    "zero": "nothing to reconstruct",
    "notes": r"an entry 'axis' \(did you mean axes\?\)",
    "wrong axes": "name each of its 4 axes once, from slice, echo, coil, kx, ky, kz",
    "mat cut": "cannot be read as a MATLAB file",
    "mat several": r"has a \(4, 48, 40\), b \(4, 48, 40\), and which of them is k-space is not clear",
    "mat four": "whose axes it does not name",
    "mat real": "holds float32, but k-space is complex",
    "cfl cut": "bytes where its header asks for",
    "cfl header": "no line of sizes after '# Dimensions'",
    "cfl alone": "a pair of .cfl and .hdr",
    "cfl phases": "3 entries along BART's dimension 11",
    "h5 spiral": "has a spiral trajectory; only Cartesian",
    "h5 header": r"ISMRMRD header cannot be used \(no encoding\)",
    "h5 outside": "lines lie outside the 20 that its header encodes",
    "h5 noise": "has no imaging lines",
    "h5 two counters": "2 values of contrast and 2 values of repetition",
}


@pytest.mark.parametrize("kind", SENTENCES)
def test_wrong_truncated_and_ambiguous_files_get_a_sentence(kind: str, tmp_path: Path) -> None:
    path = broken(tmp_path, kind)
    with pytest.raises(UserError, match=SENTENCES[kind]) as caught:
        open_scan(path)
    assert path.stem in str(caught.value)


def test_memory_and_disk_are_checked_before_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = as_npz(tmp_path)
    monkeypatch.setattr(memory, "available", lambda: 1000)
    with pytest.raises(
        UserError, match=r"reading a.npz needs about 1 MB of memory, but only 1 MB is free; close"
    ):
        open_scan(path)
    monkeypatch.undo()
    monkeypatch.setenv("MONARCH_DATA", str(tmp_path / "cache"))
    with pytest.raises(UserError, match=r"needs .* GB on disk.*MONARCH_DATA"):
        kept(path, "key", "kspace", (10**6, 10**6, 10**3), 0, lambda _: pytest.fail("read"))
    open_scan(path)
    assert "memory: reading a.npz needs about 1 MB; " in capsys.readouterr().out


# ---------------------------------------------------------------- folders and words


def test_files_of_one_folder_are_shared_out_without_overlap(tmp_path: Path) -> None:
    for number in range(6):
        np.save(tmp_path / f"s{number}.npy", FULL[:1])
        np.save(tmp_path / f"s{number}_maps.npy", np.broadcast_to(own.maps(), (1, *FULL.shape[1:])))
    found = {split: load_scans(tmp_path, split) for split in ("train", "val", "test")}
    names = {split: [scan.scan_id for scan in one.scans] for split, one in found.items()}
    assert names == {"train": ["s0", "s3", "s4", "s5"], "val": ["s1"], "test": ["s2"]}
    assert "shared out by name, train 4, val 1, test 1" in found["val"].report()
    for split in ("train", "val", "test"):
        (tmp_path / "in" / split).mkdir(parents=True)
        np.save(tmp_path / "in" / split / f"{split}.npy", FULL[:1])
    assert [scan.scan_id for scan in load_scans(tmp_path / "in", "val").scans] == ["val"]


def test_maps_that_notes_name_are_no_scans(tmp_path: Path) -> None:
    few = own.kspace(1, SMALL)
    for number in range(3):
        np.save(tmp_path / f"scan{number}.npy", few)
        np.save(tmp_path / f"sens{number}.npy", own.maps(SMALL)[None])
        (tmp_path / f"scan{number}.json").write_text(json.dumps({"maps": f"sens{number}.npy"}))
    found = [scan.scan_id for split in ("train", "val", "test") for scan in load_scans(tmp_path, split).scans]
    assert found == ["scan0", "scan1", "scan2"]
    # Nor are those of another format, which would be read first.
    own.write_cfl(tmp_path / "sens0.cfl", own.maps(SMALL).transpose(1, 2, 0), (*SMALL, 1, COILS))
    (tmp_path / "sens0.npy").unlink()
    (tmp_path / "scan0.json").write_text('{"maps": "sens0.cfl"}')
    (tmp_path / "._scan0.npy").write_bytes(b"of another system")
    (scan,) = load_scans(tmp_path, "train").scans
    torch.testing.assert_close(scan.read(0, 0)[1], own.tensor(own.maps(SMALL)))


def test_scans_of_another_format_in_a_folder_are_said_to_be_left_out(tmp_path: Path) -> None:
    few = own.kspace(1, SMALL)
    for split in ("train", "val"):
        (tmp_path / split).mkdir()
        np.save(tmp_path / split / "a.npy", few)
        own.write_cfl(tmp_path / split / "b.cfl", few[0].transpose(1, 2, 0), (*SMALL, 1, COILS))
    found = load_scans(tmp_path, "train")
    assert [scan.scan_id for scan in found.scans] == ["b"]
    assert found.report() == "left out 1 NumPy file: a folder is read in one format, here BART."


def test_info_says_what_was_understood(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", FULL * own.lines())
    text = info(InfoConfig(tmp_path / "a.npy"))
    for words in (
        "a, own data, read as NumPy",
        "3 slices, planes of 48 x 40",
        "4, maps by ESPIRiT from 24 x 16 samples",
        "undersampled, acceleration 1.67 on 48 x 40, calibration region 48 x 16",
        "sequence  not said",
    ):
        assert words in text


def test_info_names_the_axes_that_the_volume_will_have(tmp_path: Path) -> None:
    """Those of the lines: slices towards the head, the readout to the left, phase 1 to the back."""
    lines = mrd_lines(own.kspace(2, SMALL))
    path = own.write_mrd(tmp_path / "a.h5", own.xml(*SMALL, 1), lines)
    assert "voxels    5 x 1 x 1 mm, axes IS, RL, AP" in info(InfoConfig(path))
    (tmp_path / "a.json").write_text('{"orientation": ["RL", "IS", "AP"]}')
    assert "axes RL, IS, AP" in info(InfoConfig(path))


def test_show_draws_a_slice(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", FULL)
    assert show(ShowConfig(tmp_path / "a.npy")).stat().st_size > 10_000
    with pytest.raises(UserError, match="--slice takes 0 to 2, not 7"):
        show(ShowConfig(tmp_path / "a.npy", slice=7))


def test_own_data_in_skm_teas_layout_are_not_called_skm_tea(tmp_path: Path) -> None:
    skm_tea_scan(tmp_path / "files" / "MTR_001.h5")
    assert open_scan(tmp_path / "files" / "MTR_001.h5").origin == "own data in SKM-TEA's layout"
