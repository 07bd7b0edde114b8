"""Surroundings that are not as on the developer's machine, one try each."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import copy, copytree

from tests.crash.processes import environment, fresh, wait_until
from tests.crash.trial import ROOT, Started, in_child, run_command

DEMO = "lab.demo.train --preset smoke --epochs 1 --name a"
Try = tuple[str, str]


def tries(inputs: Path, work: Path) -> Iterator[Try]:
    """All of them: words for each, and what went wrong."""
    for each in (
        read_only,
        odd_names,
        variables,
        closed_output,
        narrow,
        colours,
        replaced_file,
        little_memory,
        diverged,
    ):
        yield from each(inputs, work)


def _said(words: str, place: Path, wanted: int = 0, **changes: str) -> str:
    process = Started(words, place, **changes)
    output = process.communicate(timeout=300)[0]
    right = process.returncode == wanted and "Traceback" not in output
    return "" if right else f"status {process.returncode}: {output[-300:]}"


def read_only(inputs: Path, work: Path) -> Iterator[Try]:
    """Nobody may write here. The superuser may everywhere: a file stands where a folder should be, instead."""
    darcy, masks = (
        "data.darcy --num-samples 1 --resolution 8 --workers 1",
        "data.masks --count 1 --ky 32 --kz 24",
    )
    for words in (DEMO, darcy, masks):
        place = fresh(work)
        if os.getuid() == 0:
            for name in ("runs", "datasets"):
                (place / name).write_text("")
        else:
            place.chmod(0o500)
        said = _said(words, place, wanted=2)
        place.chmod(0o700)
        yield f"{words.split()[0]} in a folder that cannot be written", said


def odd_names(inputs: Path, work: Path) -> Iterator[Try]:
    """A path with spaces, quotes and letters beyond ASCII."""
    place = fresh(work) / "Größe 'und' “Δx” données 数据"
    place.mkdir()
    copy(inputs / "flow.h5", place / "der Fluß.h5")
    copytree(inputs / "knees", place / "Knie ümlaut")
    yield "training in an odd folder", _said(DEMO.replace("--name a", "--name 'größe 1'"), place)
    yield "fields in an odd folder", _said("data.fields info 'der Fluß.h5'", place)
    yield "evaluation in an odd folder", _said("lab.demo.eval", place)
    flow = "pde.train --preset smoke --nu 1e-2 --data 'der Fluß.h5' --width 4 --modes 3 --name ä"
    yield "a file of an odd name", _said(flow, place)
    knees = "mri.train --preset smoke --data 'Knie ümlaut' --epochs 1 --slices 1 --val-slices 1 --masks 1 --name ö"
    yield "a data set of an odd name", _said(knees, place)


def variables(inputs: Path, work: Path) -> Iterator[Try]:
    """No HOME, the locale C, no TERM, an absurd COLUMNS."""
    bare = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for words, more in (("HOME unset", {}), ("locale C", plain)):
        place = fresh(work)
        for command in (DEMO, "lab.demo.eval", f"data.fields show {inputs}/flow.h5 --out pictures"):
            done = subprocess.run(
                [sys.executable, "-m", *command.split()], cwd=place, env=bare | more, capture_output=True
            )
            output = (done.stdout + done.stderr).decode(errors="replace")
            wrong = done.returncode != 0 or "Traceback" in output
            yield (
                f"{command.split()[0]}, {words}",
                f"status {done.returncode}: {output[-300:]}" if wrong else "",
            )
    yield "COLUMNS is no number", _said(DEMO, fresh(work), COLUMNS="wide")


def closed_output(inputs: Path, work: Path) -> Iterator[Try]:
    """`| head -1`: it ends quietly, and what was done is kept."""
    for words in (DEMO, f"data.fields info {inputs}/flow.h5", "pde.models", "lab.demo.train --help"):
        place = fresh(work)
        line = f"{sys.executable} -m {words} 2>errors | head -1"
        done = subprocess.run(
            ["bash", "-c", line], cwd=place, env=environment(), capture_output=True, text=True
        )
        errors = (place / "errors").read_text()
        quiet = (
            "Traceback" not in errors and "Exception ignored" not in errors and done.stdout.count("\n") == 1
        )
        yield f"{words.split()[0]} | head -1", "" if quiet else errors[-300:]


def narrow(inputs: Path, work: Path) -> Iterator[Try]:
    """A terminal of 40 columns: no number is cut."""
    place = fresh(work)
    Started(DEMO, place).communicate()
    for words in ("lab.demo.eval", f"data.fields info {inputs}/flow.h5"):
        process = Started(words, place, COLUMNS="40")
        output = process.communicate(timeout=300)[0]
        cut = "…" in output or process.returncode != 0
        yield f"{words.split()[0]} on 40 columns", output[-300:] if cut else ""


def colours(inputs: Path, work: Path) -> Iterator[Try]:
    """NO_COLOR on a terminal: no escape sequence has a colour."""
    import pty

    place, (outer, inner) = fresh(work), pty.openpty()
    command, variables = [sys.executable, "-m", *DEMO.split()], environment(NO_COLOR="1", TERM="xterm")
    process = subprocess.Popen(command, cwd=place, env=variables, stdout=inner, stderr=inner)
    os.close(inner)
    output = b""
    while True:
        try:
            read = os.read(outer, 65536)
        except OSError:  # how a terminal says that nobody writes to it any more
            break
        if not read:
            break
        output += read
    os.close(outer)
    coloured = [code for code in (f"\x1b[{n}m".encode() for n in range(30, 48)) if code in output]
    wrong = process.wait() != 0 or coloured
    yield "NO_COLOR on a terminal", f"{coloured}: {output[-300:]!r}" if wrong else ""


def replaced_file(inputs: Path, work: Path) -> Iterator[Try]:
    """The data file is replaced, as by a fresh copy, while it is read; or truncated."""
    for kind in ("replaced", "truncated"):
        place = fresh(work)
        copytree(inputs / "knees", place / "knees")
        words = "mri.train --preset smoke --data knees --epochs 400 --name a"
        process, sign = Started(words, place), place / "runs/mri/a/metrics.csv"
        wait_until(lambda sign=sign, process=process: sign.exists() or process.poll() is not None)
        for scan in (place / "knees" / "files_recon_calib-24").iterdir():
            if kind == "replaced":
                copy(scan, place / "new")
                os.replace(place / "new", scan)
            else:
                os.truncate(scan, scan.stat().st_size // 2)
        time.sleep(3)
        process.send_signal(signal.SIGTERM)
        output = process.communicate(timeout=120)[0]
        wanted = (143,) if kind == "replaced" else (2, 143)
        wrong = process.returncode not in wanted or "Traceback" in output
        yield (
            f"a scan is {kind} while it is read",
            f"status {process.returncode}: {output[-300:]}" if wrong else "",
        )


def diverged(inputs: Path, work: Path) -> Iterator[Try]:
    """The weights of one of two runs are infinite: its row says nan, the other row is as it would be."""
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file

    place = fresh(work)
    copytree(inputs / "runs" / "demo", place / "runs" / "demo")
    table, rows = place / "runs" / "demo" / "results" / "table.csv", []
    commands = (f"{DEMO.replace('--name a', '--name b')} --model dense", "lab.demo.eval")
    done = [in_child(lambda words=words: run_command(words), place) for words in commands]
    rows.append(table.read_text().splitlines() if table.exists() else [])
    path = place / "runs" / "demo" / "b" / "weights.safetensors"
    with safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()["monarch"])
    del header["checksum"]
    spoilt = {name: tensor * float("inf") for name, tensor in load_file(path).items()}
    save_file(spoilt, path, metadata={"monarch": json.dumps(header)})
    done.append(in_child(lambda: run_command("lab.demo.eval"), place))
    rows.append(table.read_text().splitlines() if table.exists() else [])
    same = [one for one, other in zip(*rows, strict=False) if one == other]
    right = (
        all(one.status == 0 for one in done)
        and len(rows[1]) == 3
        and len(same) == 2
        and "nan" in done[-1].output
    )
    yield (
        "a model that diverged",
        "" if right else f"{[one.status for one in done]}, {rows}: {done[-1].output[-300:]}",
    )


def little_memory(inputs: Path, work: Path) -> Iterator[Try]:
    """Two DataLoader workers, and less and less memory: they work, or there is one sentence."""
    for megabytes in (1000, 100, 30, 10, 3):
        place = fresh(work)
        words = f"{DEMO} --num-workers 2"
        done = in_child(lambda words=words: run_command(words), place, seconds=120, memory=megabytes * 2**20)
        yield f"two DataLoader workers and {megabytes} MB", done.complaint
