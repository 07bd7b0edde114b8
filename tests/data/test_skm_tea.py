"""SKM-TEA's layout: read as stored, filtered, in published subsets, and every broken file named."""

import json
import pickle
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from data.scans.reader import load_scans, open_scan
from data.scans.sense import Sense
from data.scans.skm_tea.format import read_annotations
from data.scans.skm_tea.layout import annotation_path, dataset_shapes, mask_key, scan_path, write_annotations
from data.scans.skm_tea.scan import SkmTeaScan
from data.scans.slices import Slice, SliceDataset, collate
from lab.errors import UserError
from tests.data.mri_files import ACQUIRED, SHAPE, record, skm_tea_root, skm_tea_scan

# The training split of SKM-TEA v1.0.0; 135 and 228 have other shapes.
TRAIN = """1 8 10 15 16 18 19 20 28 33 40 43 46 49 51 53 56 57 61 77 84 87 93 94 95 97 98 100 101 103 104 105 107
109 113 116 118 122 124 129 135 140 142 145 146 148 150 159 161 163 164 172 174 175 177 179 183 186 189 190 191
192 193 194 200 201 204 205 206 209 210 211 212 213 215 216 225 228 229 230 232 233 236 243 245 251"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small data set, not to be changed."""
    return skm_tea_root(tmp_path_factory.mktemp("skm_tea"))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Statistics are kept in a folder of the test's own."""
    monkeypatch.setenv("MONARCH_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


def first_scan(root: Path) -> SkmTeaScan:
    scan = load_scans(root, "train").scans[0]
    assert isinstance(scan, SkmTeaScan)
    return scan


def test_every_slice_and_echo_is_what_the_file_holds(root: Path) -> None:
    dataset = SliceDataset([first_scan(root)])
    assert len(dataset) == SHAPE[0] * 2
    with h5py.File(scan_path(root, "MTR_001.h5")) as file:
        kspace, maps, target = (file[name][()] for name in ("kspace", "maps", "target"))
    for position, one in enumerate(dataset):  # type: ignore[arg-type]
        x, echo = one.slice_index, one.echo
        assert (one.scan_id, one.position) == ("MTR_001", position)
        for tensor, stored in [
            (one.kspace, kspace[x, :, :, echo].transpose(2, 0, 1)),
            (one.maps, maps[x, ..., 0].transpose(2, 0, 1)),
            (one.target, target[x, :, :, echo, 0]),
        ]:
            assert tensor.dtype == torch.complex64
            assert tensor.is_contiguous()
            assert np.array_equal(tensor.numpy(), stored)
    assert {(one.slice_index, one.echo) for one in dataset} == {(x, e) for x in range(5) for e in range(2)}  # type: ignore[attr-defined]


def test_target_is_the_sense_combination_in_our_convention(root: Path) -> None:
    one = SliceDataset([first_scan(root)])[3]
    torch.testing.assert_close(Sense(one.maps).adjoint(one.kspace), one.target, rtol=1e-4, atol=1e-5)


def test_files_without_chunks_read_the_same(root: Path, tmp_path: Path) -> None:
    """The distributed files may store an array in one piece; ours store a chunk a slice and echo."""
    with (
        h5py.File(scan_path(root, "MTR_001.h5")) as chunked,
        h5py.File(tmp_path / "MTR_001.h5", "w") as whole,
    ):
        for name in ("kspace", "maps", "target"):
            whole[name] = chunked[name][()]
        whole[mask_key(4)] = chunked[mask_key(4)][()]
        assert whole["kspace"].chunks is None
    copy = SkmTeaScan(tmp_path / "MTR_001.h5")
    for a, b in zip(copy.read(2, 1), first_scan(root).read(2, 1), strict=True):
        assert torch.equal(a, b)


def test_worker_processes_read_the_same_slices(root: Path) -> None:
    dataset = SliceDataset(load_scans(root, "train", plane=SHAPE[1:]).scans, echoes=[1])
    _ = dataset[0]  # the parent has the file open when the workers are forked
    loaded = list(DataLoader(dataset, batch_size=4, num_workers=2, collate_fn=collate))
    kspace = torch.cat([batch.kspace for batch in loaded])
    copy: SliceDataset = pickle.loads(pickle.dumps(dataset))
    for position in range(len(dataset)):
        assert torch.equal(kspace[position], dataset[position].kspace)
        assert torch.equal(kspace[position], copy[position].kspace)
    assert [scan for batch in loaded for scan in batch.scan_id] == [
        f"MTR_{number:03}" for number in (1, 2, 4) for _ in range(SHAPE[0])
    ]


def test_batches_of_different_coil_counts_reconstruct_the_same(root: Path) -> None:
    dataset = SliceDataset(load_scans(root, "test").scans, echoes=[0])
    ones: list[Slice] = [dataset[0], dataset[SHAPE[0]]]
    assert {one.kspace.shape[0] for one in ones} == {4, 6}
    batch = collate(ones)
    images = Sense(batch.maps).adjoint(batch.kspace)
    for image, one in zip(images, ones, strict=True):
        torch.testing.assert_close(image, Sense(one.maps).adjoint(one.kspace))


def test_scale_is_the_standard_deviation_of_the_magnitude_and_kept(
    root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with h5py.File(scan_path(root, "MTR_001.h5")) as file:
        expected = np.abs(file["target"][()]).astype(np.float64).std()
    assert first_scan(root).scale == pytest.approx(expected, rel=1e-6)
    monkeypatch.setattr(SkmTeaScan, "read_target", lambda *_: pytest.fail("computed again"))
    assert SliceDataset([first_scan(root)])[0].scale == pytest.approx(expected, rel=1e-6)
    assert len(list((cache / "statistics").iterdir())) == 1


def test_scale_is_computed_again_when_the_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "MTR_001.h5"
    skm_tea_scan(path, seed=0)
    before = SkmTeaScan(path).scale
    skm_tea_scan(path, seed=3)
    assert SkmTeaScan(path).scale == pytest.approx(4 * before, rel=0.1)


def test_scans_of_every_size_take_part_unless_one_is_wanted(root: Path) -> None:
    everything = load_scans(root, "train")
    assert [scan.scan_id for scan in everything.scans] == ["MTR_001", "MTR_002", "MTR_003", "MTR_004"]
    assert not everything.dropped
    one = load_scans(root, "train", plane=(24, 16))
    assert [scan.scan_id for scan in one.scans] == ["MTR_001", "MTR_002", "MTR_004"]
    assert one.dropped == {"MTR_003": "its slices are 24 x 18, not 24 x 16."}
    other = load_scans(root, "train", plane=(24, 18))
    assert [scan.scan_id for scan in other.scans] == ["MTR_003"]
    assert "left out MTR_001: its slices are 24 x 16" in other.report()


def declare(path: Path, shape: tuple[int, int, int]) -> None:
    """A scan of any size that holds nothing yet, and takes no space."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        for name, full in dataset_shapes(shape, coils=8).items():
            file.create_dataset(name, full, "complex64", chunks=(1, *full[1:]))


def test_few_shot_subsets_are_the_published_ones(tmp_path: Path) -> None:
    """On SKM-TEA's own list; only the five files that are needed exist."""
    depths = {135: 168, 228: 152}
    records = [record(n, (512, 512, depths.get(n, 160))) for n in map(int, TRAIN.split())]
    random.Random(3).shuffle(records)
    write_annotations(tmp_path, "train", records, "the training split of SKM-TEA")
    published = ["MTR_118", "MTR_174", "MTR_095", "MTR_216", "MTR_105"]
    for scan_id in published:
        declare(scan_path(tmp_path, f"{scan_id}.h5"), (512, 512, 160))
    for count in (1, 2, 3, 5):
        assert not load_scans(tmp_path, "train", count=count).dropped
        selection = load_scans(tmp_path, "train", plane=(512, 160), count=count)
        assert [scan.scan_id for scan in selection.scans] == published[:count]
        assert set(selection.dropped) == {"MTR_135", "MTR_228"}


def test_few_shot_subsets_are_nested_and_need_only_their_own_files(tmp_path: Path, root: Path) -> None:
    subsets = [[scan.scan_id for scan in load_scans(root, "train", count=n).scans] for n in (1, 2, 3)]
    assert subsets[0] == subsets[1][:1]
    assert subsets[1] == subsets[2][:2]
    copy = skm_tea_root(tmp_path)
    scan_path(copy, f"{subsets[2][2]}.h5").unlink()
    assert [scan.scan_id for scan in load_scans(copy, "train", count=2).scans] == subsets[1]
    with pytest.raises(UserError, match="there is no file"):
        load_scans(copy, "train", count=3)
    with pytest.raises(UserError, match="5 scans are wanted, but of 4 listed only 4 can be used"):
        load_scans(root, "train", count=5)


def test_acquired_grid_and_mask_come_from_the_file(root: Path) -> None:
    scan = first_scan(root)
    assert scan.acquired_grid == ACQUIRED
    mask = scan.mask(4)
    assert mask is not None
    assert mask.shape == ACQUIRED
    assert mask.sum() == 120
    assert scan.mask(6) is None
    assert scan.mask(4.04) is None  # its name would be rounded to that of 4


@pytest.mark.parametrize("value", [np.nan, 2.0])
def test_a_mask_is_of_zeros_and_ones(value: float, root: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(first_scan(root).path, tmp_path))
    with h5py.File(path, "r+") as file:
        del file[mask_key(4)]
        file[mask_key(4)] = np.full(ACQUIRED, value)
    with pytest.raises(UserError, match="should hold 0 and 1 only"):
        open_scan(path).mask(4)


def test_acquired_grid_of_a_file_without_masks_is_that_of_skm_tea(tmp_path: Path) -> None:
    for depth, lines in ((160, 80), (168, 88)):
        declare(tmp_path / f"{depth}.h5", (512, 512, depth))
        assert SkmTeaScan(tmp_path / f"{depth}.h5").acquired_grid == (416, lines)


def test_a_single_file_finds_its_voxel_size_in_the_annotations(root: Path, tmp_path: Path) -> None:
    assert open_scan(scan_path(root, "MTR_011.h5")).voxel_spacing == (0.5, 0.6, 1.5)
    skm_tea_scan(tmp_path / "scans" / "lonely.h5")
    assert open_scan(tmp_path / "scans" / "lonely.h5").voxel_spacing == (1, 1, 1)


def edit(change: Callable[[h5py.File], object]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with h5py.File(path, "r+") as file:
            change(file)

    return damage


def replace(file: h5py.File, name: str, array: np.ndarray) -> None:
    del file[name]
    file[name] = array


def truncate(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "missing key": (
        edit(lambda f: f.__delitem__("maps")),
        r"has no data set 'maps' \(it holds kspace, masks",
    ),
    "truncated": (truncate, "is not a whole HDF5 file .*truncated"),
    "absent": (lambda path: path.unlink(), "there is no file"),
    "not HDF5": (lambda path: path.write_text("html"), "is not a whole HDF5 file"),
    "wrong dtype": (
        edit(lambda f: replace(f, "kspace", np.zeros((5, 24, 16, 2, 4), np.complex128))),
        "'kspace' should be complex64 but is complex128",
    ),
    "wrong shape": (
        edit(lambda f: replace(f, "kspace", np.zeros((5, 24, 14, 2, 4), np.complex64))),
        r"'kspace' should have the shape \(5, 24, 16, any, any\) but has \(5, 24, 14, 2, 4\)",
    ),
    "wrong coils": (
        edit(lambda f: replace(f, "maps", np.zeros((5, 24, 16, 3, 1), np.complex64))),
        r"'maps' should have the shape \(5, 24, 16, 4, 1\)",
    ),
    "wrong mask": (
        edit(lambda f: replace(f, "masks/poisson_4.0x", np.ones((30, 12), bool))),
        r"mask 'poisson_4.0x' has the shape \(30, 12\)",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_bad_scan_is_named_in_one_sentence_or_skipped(damage: str, tmp_path: Path) -> None:
    apply, words = DAMAGES[damage]
    root = skm_tea_root(tmp_path)
    path = scan_path(root, "MTR_002.h5")
    apply(path)
    with pytest.raises(UserError, match=words) as caught:
        load_scans(root, "train")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    selection = load_scans(root, "train", skip_bad=True)
    assert [scan.scan_id for scan in selection.scans] == ["MTR_001", "MTR_003", "MTR_004"]
    assert str(path) in selection.dropped["MTR_002"]


def test_damage_inside_the_data_is_named_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "MTR_001.h5"
    with h5py.File(path, "w") as file:
        for name, shape in dataset_shapes(SHAPE, coils=4).items():
            file.create_dataset(name, data=np.ones(shape, np.complex64), chunks=shape, fletcher32=True)
        file[mask_key(4)] = np.ones(ACQUIRED, bool)
        offset = file["kspace"].id.get_chunk_info(0).byte_offset
    with path.open("r+b") as raw:
        raw.seek(offset + 1000)
        raw.write(b"rot")
    with pytest.raises(UserError, match=r"MTR_001.h5 is damaged: reading 'kspace' failed"):
        SkmTeaScan(path).read(0, 0)


def test_a_constant_target_cannot_be_normalised(tmp_path: Path) -> None:
    path = tmp_path / "MTR_001.h5"
    skm_tea_scan(path)
    with h5py.File(path, "r+") as file:
        file["target"][...] = 0
    with pytest.raises(UserError, match=r"MTR_001.h5: the target is constant"):
        SliceDataset([SkmTeaScan(path)])


def test_wrong_folders_and_annotations_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SKM_TEA_ROOT", raising=False)
    with pytest.raises(UserError, match="pass --data FOLDER or set SKM_TEA_ROOT"):
        load_scans(None, "train")
    monkeypatch.setenv("SKM_TEA_ROOT", str(tmp_path))
    with pytest.raises(UserError, match=r"SKM_TEA_ROOT names .* but there is no .*train.json"):
        load_scans(None, "train")
    root = skm_tea_root(tmp_path)
    assert len(load_scans(None, "train").scans) == 4
    with pytest.raises(UserError, match="choose one of train, val, test"):
        load_scans(root, "training")
    with pytest.raises(UserError, match=r"there is no file .*val.json"):
        load_scans(root, "val")
    path = annotation_path(root, "train")
    content = json.loads(path.read_text())
    content["images"][0]["orientation"] = ["SI", "AP", "AP"]
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"train.json: an entry of 'images' .*orientation"):
        load_scans(root, "train")
    content["images"][0]["orientation"] = ["SI", "AP", "LR"]
    del content["images"][0]["scan_id"]
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"train.json: an entry of 'images' .*scan_id"):
        load_scans(root, "train")


@pytest.mark.parametrize("key", ["scan_id", "file_name"])
@pytest.mark.parametrize("name", ["../../x", "/elsewhere/x", "..", "", "x" * 300, "a\0b"])
def test_names_in_annotations_lead_nowhere_else(root: Path, tmp_path: Path, key: str, name: str) -> None:
    content = json.loads(annotation_path(root, "train").read_text())
    content["images"][0][key] = name
    there = annotation_path(tmp_path, "train")
    there.parent.mkdir(parents=True)
    there.write_text(json.dumps(content))
    with pytest.raises(UserError, match=rf"train\.json: .*{key} must be a plain folder name"):
        read_annotations(tmp_path, "train")


def test_there_is_no_third_echo(root: Path) -> None:
    with pytest.raises(UserError, match="MTR_001 has 2 echoes; there is no echo 3"):
        SliceDataset([first_scan(root)], echoes=[2])


@pytest.mark.parametrize(
    ("name", "said"), [("kspace", "k-space"), ("maps", "coil maps"), ("target", "target")]
)
def test_nan_is_found_where_it_is_read_with_its_place(tmp_path: Path, name: str, said: str) -> None:
    path = tmp_path / "MTR_001.h5"
    skm_tea_scan(path)
    with h5py.File(path, "r+") as file:
        place = (1, 2, 3, 0, 0)
        file[name][place] = np.nan
    with pytest.raises(UserError, match=rf"MTR_001\.h5: the {said} of slice 1, echo 1 contain NaN"):
        open_scan(path).checked(1, 0)
    assert open_scan(path).checked(0, 0)[0].isfinite().all()
