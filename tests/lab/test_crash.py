"""Starting a run, killed before every single file operation: afterwards there is no run, or one that continues."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from lab.demo.config import TrainConfig
from lab.errors import UserError
from lab.run import Run

KILL_EVERYWHERE = textwrap.dedent("""
    import json, os, sys
    import torch
    from lab import manifest
    from lab.demo.config import TrainConfig
    from lab.errors import UserError
    from lab.run import Run
    from pathlib import Path

    manifest.git_state = lambda: None
    FILE_EVENTS = ("open", "os.mkdir", "os.rename", "os.remove", "os.chmod")

    def in_child(work):
        pid = os.fork()
        if pid == 0:
            try:
                os._exit(work() or 0)
            except UserError as error:
                print(error, file=sys.stderr)
                os._exit(3)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def killed_at(number, name):
        left = [number]
        def hook(event, arguments):
            if event in FILE_EVENTS and isinstance(arguments[0], (str, Path)) and "runs" in str(arguments[0]):
                left[0] -= 1
                if left[0] == 0:
                    os._exit(9)
        sys.addaudithook(hook)
        Run.open(TrainConfig(name=name))

    def started(name, resume):
        with Run.open(TrainConfig(name=name, resume=resume)) as run:
            assert (run.folder / "config.yaml").is_file() and (run.folder / "manifest.json").is_file()
            names = {path.name for path in run.folder.iterdir()}
            return 0 if names <= {".lock", "config.yaml", "manifest.json", "log.txt"} else 4

    outcomes, number = [], 0
    while True:
        number += 1
        if in_child(lambda: killed_at(number, f"again{number}")) == 0:
            break
        in_child(lambda: killed_at(number, f"fresh{number}"))
        folder = Path("runs/demo") / f"fresh{number}"
        begun = (folder / "config.yaml").is_file() and (folder / "manifest.json").is_file()
        resumed = in_child(lambda: started(f"again{number}", True))
        fresh = in_child(lambda: started(f"fresh{number}", False))
        outcomes.append([resumed, fresh, begun])
    print(json.dumps(outcomes))
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_start_killed_anywhere_leaves_no_run_or_one_that_resumes(workplace, root):
    environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", KILL_EVERYWHERE],
        cwd=workplace,
        env=environment,
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout.splitlines()[-1])
    assert len(outcomes) > 5, "config.yaml and manifest.json alone are more operations than that"
    assert [resumed for resumed, _, _ in outcomes] == [0] * len(outcomes), done.stderr
    # Without --resume a run that came into being is refused as any other; what is not yet a run is begun.
    assert [fresh for _, fresh, _ in outcomes] == [3 if begun else 0 for *_, begun in outcomes], done.stderr
    assert {begun for *_, begun in outcomes} == {True, False}


def test_a_folder_that_is_no_run_is_left_alone(workplace):
    folder = workplace / "runs" / "demo" / "table-results"
    folder.mkdir(parents=True)
    (folder / "result.csv").write_text("mine")
    for resume in (False, True):
        with pytest.raises(UserError, match=r"is not a run.*holds result\.csv"):
            Run.open(TrainConfig(name="table-results", resume=resume))
    assert [path.name for path in folder.iterdir()] == ["result.csv"]
