"""What is understood of a scan, in a few lines."""

from data.scans.options import InfoConfig
from data.scans.reader import format_of, open_scan
from data.scans.scan import Scan
from lab.console import say
from lab.memory import size


def info(config: InfoConfig) -> str:
    """Print the summary of a file; returns it."""
    text = summary(open_scan(config.file), format_of(config.file).name)
    say(text)
    return text


def summary(scan: Scan, form: str) -> str:
    """Everything that a reconstruction depends on, one line each."""
    slices, ky, kz = scan.matrix_shape
    along = "positions along the readout" if scan.three_dimensional else "slices"
    spacing = " x ".join(f"{side:g}" for side in scan.voxel_spacing)
    timing = scan.timing
    sequence = (
        "not said"
        if timing is None
        else f"TR {timing.repetition_ms:g} ms, TE {timing.echo_ms:g} ms, flip angle {timing.flip_degrees:g} degrees"
    )
    held = 8 * slices * scan.num_echoes * ky * kz
    lines = {
        "scan": f"{scan.scan_id}, {scan.origin}, read as {form}",
        "matrix": f"{slices} {along}, planes of {ky} x {kz}",
        "coils": f"{scan.num_coils}, maps {scan.maps_are}",
        "echoes": str(scan.num_echoes),
        "sampling": str(scan.sampling),
        "voxels": f"{spacing} mm, axes {', '.join(scan.directions)}",
        "sequence": sequence,
        "memory": f"{size(held * scan.num_coils)} of k-space on disk, {size(held)} per reconstruction",
    }
    return "\n".join(f"{key:9} {text}" for key, text in lines.items())
