"""Misuse ends in one sentence that says what was expected and what came, and leaves everything as it was."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch import nn

import monarch_core as mc

M = mc.Monarch(16)
PLANE = mc.PlaneTransform((8, 8), 2, groups=2)
AXIS = mc.AxisTransform(8, 2)
CONV = mc.MonarchConv1d(2, 10)
BUTTERFLY = [torch.ones(2, 2, 2, 1, dtype=torch.complex64), torch.ones(1, 2, 2, 2)]
SPOILT = torch.eye(16)
SPOILT[3, 5] = float("nan")


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))


MISUSES = {
    "a size that is no number": (lambda: mc.Monarch("16"), TypeError, "whole number; got '16'"),
    "a negative size": (lambda: mc.Monarch(-4, blocks=2), ValueError, "in_features should be at least 1"),
    "no blocks": (lambda: mc.Monarch(16, blocks=0), ValueError, "blocks of R should be at least 1"),
    "rank 0": (lambda: mc.Monarch(16, rank=0), ValueError, "rank of a Monarch operator should be at least 1"),
    "a dtype by name": (lambda: mc.Monarch(16, dtype="float32"), TypeError, "a torch.dtype"),
    "numpy's dtype": (lambda: mc.dct(16, dtype=np.float32), TypeError, "a torch.dtype"),
    "integers in": (
        lambda: M(torch.ones(16, dtype=torch.int64)),
        TypeError,
        "floating or complex; got torch.int64",
    ),
    "double into float": (lambda: M(torch.ones(3, 16).double()), TypeError, r"float64.*float32; convert"),
    "double into float, adjoint": (
        lambda: M.adjoint(torch.ones(16).double()),
        TypeError,
        r"the input with .to\(torch.float32\), or the operator with .to\(torch.float64\)",
    ),
    "complex double into complex": (
        lambda: mc.dft(16)(torch.ones(16, dtype=torch.complex128)),
        TypeError,
        r"the operator with .to\(torch.float64\)",
    ),
    "complex into a real layer": (
        lambda: mc.MonarchLinear(16, 16)(torch.ones(16, dtype=torch.complex64)),
        TypeError,
        r"convert the input with .to\(torch.float32\)\.$",
    ),
    "a number in": (lambda: M(torch.tensor(1.0)), ValueError, "should end in 16"),
    "from_dense of an array": (lambda: mc.Monarch.from_dense(np.eye(16)), TypeError, "got ndarray"),
    "from_dense of a NaN": (lambda: mc.Monarch.from_dense(SPOILT), ValueError, "not finite"),
    "from_dense of an inf": (
        lambda: mc.Monarch.from_dense(torch.eye(16) / 0, 4, 2),
        ValueError,
        "not finite",
    ),
    "from_dense on meta": (
        lambda: mc.Monarch.from_dense(torch.eye(16, device="meta")),
        ValueError,
        "no values",
    ),
    "from_dense, sparse": (lambda: mc.Monarch.from_dense(torch.eye(16).to_sparse()), TypeError, "to_dense"),
    "factors of None": (
        lambda: mc.Monarch.from_factors(None, None),
        TypeError,
        "factor R should be a tensor",
    ),
    "a short diagonal": (lambda: M.scaled(torch.ones(3)), ValueError, "16 entries; the diagonal has 3"),
    "a vector to project": (lambda: mc.project(torch.ones(4)), ValueError, "two axes or more"),
    "swapped factors": (
        lambda: mc.projection_report(torch.eye(16), *mc.project(torch.eye(16), (2, 4))[::-1]),
        ValueError,
        "not the factors of a matrix",
    ),
    "dct of nothing": (lambda: mc.dct(None), TypeError, "points of a transform should be a whole number"),
    "dst below 1": (lambda: mc.dst(-1), ValueError, "at least 1; got -1"),
    "dft without blocks": (lambda: mc.dft(16, blocks=0), ValueError, "blocks of R should be at least 1"),
    "dft in negative blocks": (lambda: mc.dft(16, blocks=-4), ValueError, "blocks of R should be at least 1"),
    "a permutation as a list": (lambda: mc.Permutation([1, 0]), TypeError, "got list"),
    "a permutation of floats": (
        lambda: mc.Permutation(torch.tensor([1.0, 0.0])),
        TypeError,
        "int32 or int64",
    ),
    "columns that do not divide": (lambda: mc.Stride(7, 2), ValueError, "divides 7; got 2"),
    "a size below nothing": (lambda: mc.Resize(4, -1), ValueError, "out_features should be at least 1"),
    "a sum of nothing": (lambda: mc.Combination(), ValueError, "at least one operator"),
    "complex factors in a real butterfly": (
        lambda: mc.butterfly(BUTTERFLY, dtype=torch.float32),
        TypeError,
        "butterfly matrix is complex",
    ),
    "hadamard of a word": (lambda: mc.hadamard("16"), TypeError, "whole number"),
    "dft2 of a number": (lambda: mc.dft2(16), TypeError, "whole numbers; got 16"),
    "kronecker of vectors": (lambda: mc.kronecker(torch.ones(2), torch.ones(2)), ValueError, "a matrix"),
    "circulant of a list": (lambda: mc.circulant([1.0, 2.0]), TypeError, "got list"),
    "convolution of a word": (lambda: mc.convolution(torch.ones(3), "a"), TypeError, "length of a signal"),
    "diagonals as arrays": (lambda: mc.acdc(np.ones(4), np.ones(4)), TypeError, "got ndarray"),
    "butterfly of nothing": (lambda: mc.butterfly([]), ValueError, "at least two factors"),
    "no products": (lambda: mc.mm_star(16, power=0), ValueError, "at least 1; got 0"),
    "half an expansion": (lambda: mc.hierarchy(16, 1, 0.5), TypeError, "expansion should be a whole number"),
    "factorize of a NaN": (lambda: mc.factorize(SPOILT, 4), ValueError, "not finite"),
    "a separable operator of planes": (
        lambda: mc.Separable(mc.dft2((4, 4)), mc.dft(4)),
        ValueError,
        r"one operator on vectors per axis; got Separable \(4, 4\)",
    ),
    "the real part of a matrix": (
        lambda: mc.RealPart(torch.eye(3)),
        TypeError,
        "linear operators; got Tensor",
    ),
    "factors of nothing": (
        lambda: mc.Monarch.from_factors(torch.ones(0, 2, 1, 3), torch.ones(2, 3, 0, 1)),
        ValueError,
        "all of them at least 1",
    ),
    "MM* of matrices": (
        lambda: mc.MMStar(torch.eye(3), torch.eye(3), torch.eye(3)),
        ValueError,
        r"factor L1 of MM\* should be a tensor with 3 axes",
    ),
    "doubles into MM*": (
        lambda: mc.factorize(mc.mm_star(16).to_dense(), 4)(torch.ones(16).double()),
        TypeError,
        r"convert the input with .to\(torch.float32\)",
    ),
    "blocks of the identity": (
        lambda: mc.identity(10, blocks=3),
        ValueError,
        "^the identity of size 10 needs two block counts",
    ),
    "blocks of a Hadamard operator": (
        lambda: mc.hadamard(16, blocks=3),
        ValueError,
        "^a Hadamard operator of size 16 needs two block counts",
    ),
    "a complex operator in bfloat16": (
        lambda: mc.dft(16).to(torch.bfloat16)(torch.ones(16, dtype=torch.bfloat16)),
        TypeError,
        "no complex numbers in bfloat16.*in_pairs",
    ),
    "separable tensors": (lambda: mc.Separable(torch.eye(3)), TypeError, "linear operators; got Tensor"),
    "a grid of one number": (lambda: mc.GridMonarch(16), TypeError, "grid of the input"),
    "keep as a number": (lambda: mc.grid_dft((8, 8), keep=3), TypeError, "keep is a pair"),
    "no modes": (lambda: mc.PlaneTransform((8, 8), 0), ValueError, "at least 1; got 0"),
    "learn all": (lambda: mc.PlaneTransform((8, 8), 2, learn="all"), ValueError, "one of fixed, matrix"),
    "learn one of two": (
        lambda: mc.PlaneTransform((8, 8), 2, learn=("fixed",)),
        TypeError,
        "learn is one word",
    ),
    "no groups": (lambda: mc.PlaneTransform((8, 8), 2, groups=0), ValueError, "groups should be at least 1"),
    "a field of another grid": (lambda: PLANE.analyse(torch.ones(2, 7, 8, 4)), ValueError, "8, 8, channel"),
    "channels beside groups": (
        lambda: PLANE.analyse(torch.ones(1, 8, 8, 3)),
        ValueError,
        "multiple of 2 channels",
    ),
    "modes of another plane": (lambda: PLANE.synthesise(torch.ones(3, 2, 1, 2)), ValueError, "takes modes"),
    "doubles into a plane": (
        lambda: PLANE.analyse(torch.ones(1, 8, 8, 2).double()),
        TypeError,
        r"convert the input with .to\(torch.float32\), or the operator",
    ),
    "doubles back from a plane": (
        lambda: PLANE.synthesise(torch.ones(8, 2, 1, 2).double()),
        TypeError,
        "convert the input",
    ),
    "integers into a plane": (
        lambda: PLANE.analyse(torch.ones(1, 8, 8, 2, dtype=torch.int64)),
        TypeError,
        r"with .to\(torch.float32\)\.$",
    ),
    "doubles into an axis": (lambda: AXIS.analyse(torch.ones(2, 8).double()), TypeError, "convert the input"),
    "doubles into the operator of an axis": (
        lambda: AXIS.analysis(torch.ones(2, 8).double()),
        TypeError,
        "convert the input",
    ),
    "modes of another axis": (
        lambda: AXIS.synthesise(torch.ones(3, 2, 7, 2), (7,)),
        ValueError,
        r"takes modes \(2, channel, 7 lines, 2\)",
    ),
    "modes of another sphere": (
        lambda: mc.SphereTransform((8, 16), 4).synthesise(torch.ones(4, 2, 7, 2)),
        ValueError,
        "4 orders of each field",
    ),
    "a complex plane": (
        lambda: mc.PlaneTransform((8, 8), 2, dtype=torch.complex64),
        TypeError,
        "PlaneTransform has pairs of real numbers; got dtype=torch.complex64. Pass torch.float32",
    ),
    "a plane of integers": (
        lambda: mc.PlaneTransform((8, 8), 2, dtype=torch.int64),
        TypeError,
        "needs a floating or complex dtype",
    ),
    "a block size as a word": (
        lambda: mc.butterfly(BUTTERFLY, "2"),
        TypeError,
        "block_size should be a whole number; got '2'",
    ),
    "fewer modes than none": (lambda: mc.AxisTransform(8, -1), ValueError, "modes should be at least 1"),
    "lines of another length": (lambda: AXIS.analyse(torch.ones(2, 7)), ValueError, r"\(channel, ..., 8\)"),
    "degrees as a word": (lambda: mc.SphereTransform((8, 16), "a"), TypeError, "degrees should be a whole"),
    "latitudes of another name": (
        lambda: mc.PlaneTransform((16, 32), 2, start="sht", latitudes="gauss"),
        ValueError,
        "latitudes are one of legendre-gauss, equiangular; got 'gauss'",
    ),
    "pairs of a tensor": (lambda: mc.in_pairs(torch.eye(3)), TypeError, "linear operators; got Tensor"),
    "a layer on an array": (lambda: mc.MonarchLinear(16, 16)(np.ones(16)), TypeError, "should be a tensor"),
    "a layer on a number": (lambda: mc.MonarchLinear(16, 16)(torch.tensor(1.0)), ValueError, "end in 16"),
    "a large layer on doubles": (
        lambda: mc.MonarchLinear(512, 512)(torch.ones(300, 512).double()),
        TypeError,
        "convert the input",
    ),
    "a weight as an array": (lambda: mc.MonarchLinear.from_weight(np.eye(16)), TypeError, "got ndarray"),
    "a bias of another size": (
        lambda: mc.MonarchLinear.from_weight(torch.eye(16), nn.Parameter(torch.ones(3))),
        TypeError,
        "nn.Parameter of 16 numbers",
    ),
    "select as a list": (lambda: mc.monarchize(model(), ["0"]), TypeError, "select is a regular expression"),
    "select as a layer": (lambda: mc.monarchize(model(), nn.Linear(2, 2)), TypeError, "select is"),
    "select words in a tuple": (lambda: mc.monarchize(model(), ("0", "2")), TypeError, "select is"),
    "monarchize without blocks": (lambda: mc.monarchize(model(), blocks=0), ValueError, "at least 1; got 0"),
    "densify of nothing": (lambda: mc.densify(None), TypeError, "nn.Module; got NoneType"),
    "groups of parameters": (lambda: mc.param_groups(model().parameters(), 1e-3), TypeError, "got generator"),
    "an adapter for one layer": (
        lambda: mc.attach_adapter(nn.Linear(8, 8)),
        ValueError,
        r"MonarchAdapter\(layer\)",
    ),
    "no channels": (lambda: mc.MonarchConv1d(0, 10), ValueError, "channels should be at least 1"),
    "a complex convolution": (lambda: mc.MonarchConv1d(2, 10, dtype=torch.complex64), TypeError, "is real"),
    "a signal as an array": (lambda: CONV(np.ones((2, 10))), TypeError, "signal should be a tensor"),
    "a kernel of other channels": (
        lambda: CONV.convolve(torch.ones(1, 2, 10), torch.ones(3, 10)),
        ValueError,
        r"shape \(2, 10\)",
    ),
    "images of three sides": (lambda: mc.MonarchConv2d(2, (9, 9, 9)), TypeError, "size of the images"),
    "attention of a linear layer": (
        lambda: mc.MonarchAttention.from_attention(nn.Linear(2, 2)),
        TypeError,
        "takes an nn.MultiheadAttention",
    ),
}


@pytest.mark.parametrize(("call", "error", "sentence"), MISUSES.values(), ids=MISUSES.keys())
def test_misuse_is_named(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


@pytest.mark.parametrize("content", ["{", "3", '{"layers": 3}', '{"layers": {"0": {"kind": "other"}}}'])
def test_a_damaged_structure_is_named(tmp_path, content):
    (tmp_path / "monarch.json").write_text(content)
    with pytest.raises(ValueError, match=r"monarch\.json"):
        mc.load_converted(model(), tmp_path)


def test_damaged_weights_are_named(tmp_path):
    converted = model()
    mc.monarchize(converted)
    mc.save_converted(converted, tmp_path)
    assert json.loads((tmp_path / "monarch.json").read_text())["layers"]
    (tmp_path / "weights.pt").write_bytes(b"junk")
    with pytest.raises(ValueError, match=r"weights\.pt is damaged"):
        mc.load_converted(model(), tmp_path)


def test_files_that_hold_no_adapters_are_named(tmp_path):
    file = tmp_path / "adapters.pt"
    file.write_bytes(b"junk")
    with pytest.raises(ValueError, match="is damaged, or does not hold Monarch adapters"):
        mc.load_adapter(model(), file)
    for content in ({"x": 1}, [1]):
        torch.save(content, file)
        with pytest.raises(ValueError, match="Monarch adapters"):
            mc.load_adapter(model(), file)


@pytest.mark.parametrize("options", [{"rank": 0}, {"blocks": 48}])
def test_an_adapter_that_does_not_fit_leaves_the_model_trainable(options):
    refused = model()
    with pytest.raises(ValueError, match=r"rank|do not fit"):
        mc.attach_adapter(refused, **options)
    assert all(p.requires_grad for p in refused.parameters())
    assert not any(isinstance(m, mc.MonarchAdapter) for m in refused.modules())


def test_an_adapter_of_another_size_leaves_the_model_as_it_is(tmp_path):
    adapted, other = model(), nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32))
    mc.attach_adapter(adapted)
    mc.save_adapter(adapted, tmp_path / "adapters.pt")
    with pytest.raises(ValueError, match="layer of another size"):
        mc.load_adapter(other, tmp_path / "adapters.pt")
    assert [type(m) for m in other] == [nn.Linear, nn.ReLU, nn.Linear]
    assert all(p.requires_grad for p in other.parameters())


def test_a_layer_on_the_meta_device_works_under_autocast():
    with torch.device("meta"):
        layer, x = mc.MonarchLinear(64, 32), torch.empty(3, 64)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(x).shape == (3, 32)
