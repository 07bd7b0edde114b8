"""Complex numbers as pairs: the products, in complex kernels and without any."""

import contextlib

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from monarch_core import PlaneTransform, SphereTransform, dct, real_arithmetic
from monarch_core.pairs import adjoint, product, real_part_matrix, rearranged

WAYS = {"complex": contextlib.nullcontext, "real": real_arithmetic}


class NoComplexTensors(TorchDispatchMode):
    """Any operation that takes or makes a complex tensor is an error."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for leaf in tree_leaves((args, kwargs, made)):
            assert not (isinstance(leaf, torch.Tensor) and leaf.is_complex()), f"{func} is complex"
        return made


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, 2, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("way", WAYS)
def test_product_is_that_of_complex_matrices(way, assert_close):
    A, B = draw(3, 4, 5), draw(3, 5, 6)
    expected = torch.view_as_complex(A) @ torch.view_as_complex(B)
    with WAYS[way]():
        assert_close(torch.view_as_complex(product(A, B)), expected)
        assert_close(torch.view_as_complex(adjoint(A)), torch.view_as_complex(A).mH)


@pytest.mark.parametrize("way", WAYS)
def test_product_has_first_and_second_derivatives(way):
    A, B = draw(2, 3, 4), draw(2, 4, 2)
    with WAYS[way]():
        assert torch.autograd.gradcheck(product, (A, B))
        assert torch.autograd.gradgradcheck(product, (A, B))


def test_both_ways_have_the_same_gradients(assert_close):
    A, B, above = draw(3, 4, 5), draw(3, 5, 6), draw(3, 4, 6)
    found = []
    for way in WAYS.values():
        with way():
            found.append(torch.autograd.grad(product(A, B), (A, B), above))
    for first, second in zip(*found, strict=True):
        assert_close(first, second)


def test_real_part_matrix_takes_pairs_to_the_real_part(assert_close):
    z, B = draw(3, 4, 5), draw(3, 5, 6)
    expected = (torch.view_as_complex(z) @ torch.view_as_complex(B)).real
    assert_close(z.flatten(2) @ real_part_matrix(B), expected)


@pytest.mark.parametrize("way", WAYS)
def test_axes_are_rearranged_by_letter(way):
    x = draw(6, 5)
    with WAYS[way]():
        made = rearranged(x, "abc", "cab", a=2, b=3, c=5)
    assert made.is_contiguous()
    assert torch.equal(made, x.view(2, 3, 5, 2).permute(2, 0, 1, 3))


@pytest.mark.parametrize(
    "options",
    [
        {"learn": "matrix", "groups": 2},
        {"learn": "monarch"},
        {"learn": ("per-frequency", "per-point"), "start": "sht"},
        {"learn": ("per-frequency", "fixed"), "shear": True},
    ],
)
def test_real_arithmetic_forms_no_complex_tensor_and_agrees(options, assert_close):
    torch.manual_seed(0)
    plane = PlaneTransform((12, 12), 3, **options, dtype=torch.float64)
    field = torch.randn(2, 12, 12, 4, dtype=torch.float64, requires_grad=True)
    expected = plane.synthesise(plane.analyse(field))
    inputs = (field, *plane.parameters())
    gradients = torch.autograd.grad(expected.square().sum(), inputs)
    with real_arithmetic(), NoComplexTensors():
        made = plane.synthesise(plane.analyse(field))
        again = torch.autograd.grad(made.square().sum(), inputs)
    assert_close(made, expected)
    for one, other in zip(again, gradients, strict=True):
        assert_close(one, other)


def test_sphere_needs_no_complex_tensor():
    sphere = SphereTransform((12, 24), 6)
    with real_arithmetic(), NoComplexTensors():
        assert sphere.synthesise(sphere.analyse(torch.randn(2, 12, 24, 3))).shape == (2, 12, 24, 3)


def test_bfloat16_is_multiplied_as_real_numbers():
    A, B = torch.randn(2, 3, 4, 2), torch.randn(2, 4, 5, 2)
    made = product(A.bfloat16(), B.bfloat16())
    assert made.dtype == torch.bfloat16
    assert (made.float() - product(A, B)).norm() < 0.02 * product(A, B).norm()
    with torch.autocast("cpu", torch.bfloat16):
        assert product(A, B).dtype == torch.bfloat16


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # of torch's own rules
@pytest.mark.parametrize("way", WAYS)
def test_derivatives_go_forward_too(way, assert_close):
    sheared = PlaneTransform((6, 6), 2, learn="matrix", shear=True, dtype=torch.float64).analysis
    for operator in (sheared, dct(12, dtype=torch.float64)):
        x, direction = torch.randn(2, 2, *operator.in_shape, dtype=torch.float64)
        with WAYS[way](), torch.autograd.forward_ad.dual_level():
            y = operator(torch.autograd.forward_ad.make_dual(x, direction))
            assert_close(torch.autograd.forward_ad.unpack_dual(y).tangent, operator(direction))


def test_a_transform_on_the_meta_device_gives_shapes():
    plane = PlaneTransform((8, 8), 2, learn="matrix").to("meta")
    modes = plane.analyse(torch.empty(3, 8, 8, 5, device="meta"))
    assert plane.synthesise(modes).shape == (3, 8, 8, 5)
