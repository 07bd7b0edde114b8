"""Models as files for other programs: ONNX, and torch's own .pt2, with a free batch size.

Whatever an application exports is a module in real arithmetic with named inputs. The file says in its metadata, JSON
under one name as in a weights file, what the model is and what its numbers mean; and it is run once it is written.
"""

import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from copy import deepcopy
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lab.checks import existing_file
from lab.config import ExportOptions
from lab.console import say
from lab.errors import UserError
from lab.files import atomic_path
from monarch_core import __version__

FORMATS = (".onnx", ".pt2")
METADATA = "monarch"
TOLERANCE = 1e-5
"""Relative error, against the model itself, of a file that is right; more only where rounding alone makes more."""
OPSET = 20
"""The version of ONNX's operators that files are written in."""
MODES = {"bicubic": "cubic", "bilinear": "linear"}
"""What sampling modes are called since version 20."""

Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class Exportable:
    """What an application hands over.

    Attributes:
        module: takes `inputs` by name and gives one tensor.
        inputs: example inputs for a batch of the given size.
        free: which axes of each input may have any length, {input: {axis: name}}.
        output: the name of the result.
        expected: what the application itself answers to such inputs; what the file is checked against.
        metadata: JSON-like values, the model's name among them.
    """

    module: nn.Module
    inputs: Callable[[int], Tensors]
    free: Mapping[str, Mapping[int, str]]
    output: str
    expected: Callable[[Tensors], Tensor]
    metadata: Mapping[str, Any]


def check_name(path: Path) -> Path:
    """A path whose ending names a format."""
    if path.suffix not in FORMATS:
        raise UserError(f"--out takes a name that ends in {' or '.join(FORMATS)}, not {path}.")
    if path.suffix == ".onnx":
        _need_onnx()
    return path


def write(options: ExportOptions, exportable: Callable[[Path], Exportable]) -> Path:
    """Export what the application makes of the weights; the body of its command."""
    check_name(options.out)
    return export(exportable(existing_file(options, "weights")), options.out)


def export(model: Exportable, path: Path) -> Path:
    """Write the model, run what was written and keep it if its numbers are right."""
    check_name(path)
    with _quiet(), torch.no_grad(), atomic_path(path) as temporary:
        try:
            with redirect_stderr(StringIO()):  # where torch prints the graph that it gave up on
                _save(model, temporary)
        except OSError:  # a full disk, which has its own sentence
            raise
        except Exception as error:  # the exporters have no exception in common
            reason = str(error).strip().split("\n")[0]
            raise UserError(
                f"torch {torch.__version__} cannot export {model.metadata['model']} as {path.suffix}: {reason}"
            ) from error
        _check(model, temporary)
    say(f"wrote {path}: {model.metadata['model']}, {', '.join(model.free)} in, {model.output} out")
    return path


def run(path: Path, inputs: Tensors) -> Tensor:
    """The answer of an exported file."""
    if path.suffix == ".pt2":
        with _quiet(), torch.no_grad():
            return torch.export.load(path).module()(**inputs)
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (result,) = session.run(None, {name: tensor.numpy() for name, tensor in inputs.items()})
    return torch.from_numpy(result)


def read_metadata(path: Path) -> dict[str, Any]:
    """What an exported file says of itself."""
    if path.suffix == ".pt2":
        files = {f"{METADATA}.json": ""}
        with _quiet():
            torch.export.load(path, extra_files=files)
        text = files[f"{METADATA}.json"]
    else:
        _need_onnx()
        import onnx

        properties = onnx.load(path, load_external_data=False).metadata_props
        text = {entry.key: entry.value for entry in properties}.get(METADATA, "")
    if not text:
        raise UserError(f"{path} has no metadata of this suite: another program wrote it.")
    return json.loads(text)


def _save(model: Exportable, path: Path) -> None:
    free = {name: dict.fromkeys(axes, torch.export.Dim.DYNAMIC) for name, axes in model.free.items()}
    program = torch.export.export(model.module, (), dict(model.inputs(3)), dynamic_shapes=free)
    metadata = json.dumps({**model.metadata, "version": __version__})
    if path.suffix == ".pt2":
        content = BytesIO()  # into a file torch would write the temporary name of that file
        torch.export.save(program, content, extra_files={f"{METADATA}.json": metadata})
        path.write_bytes(content.getvalue())
        return
    from onnx_ir import AttrString
    from onnx_ir.passes.common import RemoveUnusedNodesPass

    named = {name: dict(axes) for name, axes in model.free.items()}
    made = torch.onnx.export(
        program,
        dynamo=True,
        verbose=False,
        opset_version=OPSET,
        output_names=[model.output],
        dynamic_shapes=named,
    )
    assert made is not None
    for node in made.model.graph.all_nodes():
        # Within loops torch writes the names of an earlier version of the operator.
        if node.op_type == "GridSample" and (mode := node.attributes.get("mode")) is not None:
            node.attributes.add(AttrString("mode", MODES.get(mode.as_string(), mode.as_string())))
    # Constants that a loop leaves behind, of which onnxruntime would warn.
    RemoveUnusedNodesPass()(made.model)
    made.model.metadata_props[METADATA] = metadata
    made.save(path)


def _check(model: Exportable, path: Path) -> None:
    """Run the file on other batch sizes than it was made with."""
    try:
        found = [(run(path, inputs), inputs) for inputs in map(model.inputs, (1, 2))]
    except ModuleNotFoundError:
        say("not checked: running ONNX files needs onnxruntime; pip install 'monarch-science[export]'")
        return
    worst = 0.0
    for answer, inputs in found:
        expected = model.expected(inputs)
        error, rounding = relative(answer, expected), _rounding(model.module, inputs)
        if not error <= max(TOLERANCE, 10 * rounding):
            raise UserError(
                f"the exported model differs from the model itself by {error:.1e}, more than rounding explains; "
                "nothing was written. Take the other format, and report it."
            )
        worst = max(worst, error)
    say(f"checked: the file agrees with the model to {worst:.0e}")


def relative(answer: Tensor, expected: Tensor) -> float:
    """The relative error in the Euclidean norm."""
    return float((answer.double() - expected.double()).norm() / expected.double().norm())


def _rounding(module: nn.Module, inputs: Tensors) -> float:
    """The relative error of the model itself in single precision: a long rollout can enlarge it a lot."""
    exact = deepcopy(module).double()
    doubled = {name: x.double() if x.is_floating_point() else x for name, x in inputs.items()}
    return relative(module(**inputs), exact(**doubled))


def _need_onnx() -> None:
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise UserError(
            "ONNX files need onnx and onnxscript; run: pip install 'monarch-science[export]', or write a .pt2."
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what torch's exporters say about themselves: deprecations of their own, operators of torchvision."""
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
