"""Training: what is written, and what survives interruption, bad checkpoints and a second process."""

import csv
import json
import shlex
import signal
import time
from pathlib import Path

import pytest
import torch
import yaml

from lab import cli
from lab.checkpoint import MARK
from lab.demo import predictor
from lab.demo.config import TrainConfig
from lab.demo.experiment import Recovery
from lab.demo.metrics import relative_error
from lab.demo.sources import samples
from lab.demo.train import train
from lab.errors import UserError
from lab.plan import Plan
from lab.run import Run, continued_by
from lab.runs import finished_runs

OPTIONS = ("--preset", "smoke", "--seed", "3")
LONG = ("--epochs", "20", "--batch-size", "4")  # 120 steps: time enough to be interrupted


def demo(*words: str) -> dict[str, float]:
    """Train in this process; return the best scores."""
    return train(cli.parse(TrainConfig, [*OPTIONS, *words], prog="python -m lab.demo.train"))


def final_state(folder: Path) -> dict[str, torch.Tensor]:
    return torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]


def metrics(folder: Path) -> list[dict[str, str]]:
    """The rows of metrics.csv without the times, which no two runs share."""
    with (folder / "metrics.csv").open() as file:
        return [
            {key: value for key, value in row.items() if not key.endswith("seconds")}
            for row in csv.DictReader(file)
        ]


def assert_same_end(one: Path, other: Path) -> None:
    first, second = final_state(one), final_state(other)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert (one / "weights.safetensors").read_bytes() == (other / "weights.safetensors").read_bytes()
    assert metrics(one) == metrics(other)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The run that the interrupted ones are compared with: the same options, never interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MONARCH_RUNS", str(folder))
        demo("--name", "whole", *LONG)
    return folder / "demo" / "whole"


def wait_for(path: Path, process, seconds: float = 60) -> None:
    limit = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < limit, f"{path} did not appear"
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.005)


def test_epochs_have_as_many_steps_as_they_are_told(workplace):
    demo("--name", "one", "--epochs", "3", "--epoch-steps", "5")
    folder = workplace / "runs" / "demo" / "one"
    assert [int(row["step"]) for row in metrics(folder)] == [5, 10, 15]
    assert json.loads((folder / "manifest.json").read_text())["steps"]["total"] == 15


def test_training_time_grows_with_every_epoch_and_is_part_of_the_whole(workplace):
    demo("--name", "one")
    with (workplace / "runs" / "demo" / "one" / "metrics.csv").open() as file:
        seconds = [float(row["train_seconds"]) for row in csv.DictReader(file)]
    assert seconds == sorted(set(seconds))
    assert seconds[0] > 0


def test_a_run_leaves_everything_needed_to_repeat_and_reuse_it(workplace):
    best = demo("--name", "one")
    folder = workplace / "runs" / "demo" / "one"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["status"] == "finished"
    assert manifest["seed"] == 3
    assert manifest["data"]["fingerprint"]
    assert manifest["versions"]["torch"] == torch.__version__
    assert manifest["wall_seconds"] > 0
    assert set(manifest["git"]) == {"commit", "dirty"}
    assert yaml.safe_load((folder / "config.yaml").read_text())["seed"] == 3
    rows = metrics(folder)
    assert [int(row["epoch"]) for row in rows] == [1, 2, 3, 4]
    assert manifest["steps"] == {"total": int(rows[-1]["step"]), "per_pass": int(rows[0]["step"])}
    assert min(float(row["error"]) for row in rows) == pytest.approx(best["error"])
    assert "training Monarch" in (folder / "log.txt").read_text()
    x, y = samples(TrainConfig(size=16, num_train=24), seed=3).validation.tensors
    predicted = predictor.load(folder / "weights.safetensors").predict(x)
    assert relative_error(predicted, y).mean().item() == pytest.approx(best["error"], rel=1e-5)


def test_two_runs_never_share_a_folder(workplace):
    demo("--name", "taken", "--epochs", "1")
    with pytest.raises(UserError, match="add --resume to continue it, or choose another --name"):
        demo("--name", "taken", "--epochs", "1")
    demo("--epochs", "1")
    demo("--epochs", "1")
    assert len(list((workplace / "runs" / "demo").iterdir())) == 3


def test_resume_refuses_other_options(workplace):
    demo("--name", "one", "--epochs", "1")
    with pytest.raises(UserError, match=r"--lr was 0\.01, now 0\.5"):
        demo("--name", "one", "--epochs", "1", "--resume", "--lr", "0.5")


def test_an_interrupted_run_is_continued_by_its_own_command_or_by_its_campaign(workplace, monkeypatch):
    monkeypatch.setattr("lab.manifest.command_line", lambda: "python -m pde.train --nu 1e-4")
    with Run.open(TrainConfig(name="one"), {}) as run:
        alone = f"python -m pde.train --config {run.folder}/config.yaml --resume"
        assert run.resume_command() == alone
        with continued_by("python -m pde.table --problem darcy"):
            assert run.resume_command() == "python -m pde.table --problem darcy"
        assert run.resume_command() == alone


def test_the_command_that_continues_a_run_can_be_typed_whatever_its_name(workplace):
    with Run.open(TrainConfig(name="two words"), {}) as run:
        assert shlex.split(run.resume_command())[-2] == str(run.folder / "config.yaml")


def test_to_resume_a_run_takes_its_name(workplace):
    with pytest.raises(UserError, match="--resume needs --name"):
        demo("--resume")
    assert not (workplace / "runs").exists()


def test_a_run_that_failed_and_was_resumed_has_no_error(workplace):
    config = TrainConfig(name="one", resume=True)
    with pytest.raises(OSError, match="the disk"), Run.open(config, {}) as run:
        raise OSError("the disk")
    assert "the disk" in run.manifest["error"]
    with Run.open(config, {}) as run:
        assert "error" not in run.manifest


def test_a_resumed_run_keeps_the_plan_it_began_with(workplace):
    config = cli.parse(TrainConfig, [*OPTIONS, "--name", "one", "--resume"], prog="x")
    with Run.open(config, {}) as run:
        run.update(plan={"epochs": 2, "epoch_steps": 3})
    train_again = [*OPTIONS, "--name", "one", "--resume"]
    with pytest.raises(UserError, match="other data"):
        demo(*train_again[len(OPTIONS) :])
    with Run.open(config, {}) as run:
        assert Plan.stored(run) == Plan(epochs=2, epoch_steps=3)
        assert Plan.of(run.config) == Plan(epochs=4, epoch_steps=None)


def test_resume_of_a_finished_run_changes_nothing(workplace):
    first = demo("--name", "one")
    before = final_state(Path("runs/demo/one"))
    again = demo("--name", "one", "--resume")
    assert again == first
    assert all(
        torch.equal(before[name], tensor) for name, tensor in final_state(Path("runs/demo/one")).items()
    )


@pytest.mark.parametrize("checkpoint_minutes", ["1e-9", "5"], ids=["within an epoch", "between epochs"])
def test_a_killed_run_resumes_bit_for_bit(workplace, start, whole, checkpoint_minutes):
    process = start(*OPTIONS, *LONG, "--name", "killed", "--checkpoint-minutes", checkpoint_minutes)
    folder = workplace / "runs" / "demo" / "killed"
    wait_for(folder / "checkpoints" / "last.ckpt", process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    saved = torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)[MARK]["step"]
    assert 0 < saved < 120, "the kill came too late to test anything"
    demo("--name", "killed", *LONG, "--resume")
    assert_same_end(whole, folder)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_the_printed_command_resumes(workplace, start, whole, number, status):
    process = start(*OPTIONS, *LONG, "--name", "stopped")
    folder = workplace / "runs" / "demo" / "stopped"
    wait_for(folder / "metrics.csv", process)
    process.send_signal(number)
    output = process.communicate()[0]
    assert process.returncode == status, output
    assert "Traceback" not in output
    assert json.loads((folder / "manifest.json").read_text())["status"] == "interrupted"
    command = output.strip().splitlines()[-1].split()
    assert command[:3] == ["python", "-m", "lab.demo.train"]
    train(cli.parse(TrainConfig, command[3:], prog="python -m lab.demo.train"))
    assert_same_end(whole, folder)


def test_a_non_finite_loss_names_the_step_and_keeps_the_last_good_checkpoint(workplace, monkeypatch):
    loss = Recovery.loss
    monkeypatch.setattr(
        Recovery,
        "loss",
        lambda self, batch: loss(self, batch) * (torch.nan if self.global_step == 6 else 1),
    )
    with pytest.raises(UserError, match="the loss became nan at step 6 "):
        demo("--name", "sick")
    folder = workplace / "runs" / "demo" / "sick"
    assert json.loads((folder / "manifest.json").read_text())["status"] == "failed"
    assert all(torch.isfinite(tensor).all() for tensor in final_state(folder).values())
    assert torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)[MARK]["step"] == 4


def test_scores_that_are_never_finite_are_a_sentence(workplace, monkeypatch):
    scores = Recovery.scores
    monkeypatch.setattr(
        Recovery,
        "scores",
        lambda self, batch: {key: each * torch.nan for key, each in scores(self, batch).items()},
    )
    with pytest.raises(UserError, match="the validation score 'error' was finite in no epoch"):
        demo("--name", "sick", "--epochs", "1")
    assert json.loads(Path("runs/demo/sick/manifest.json").read_text())["status"] == "failed"


class Bomb:
    """Pickled, it would create a file when loaded."""

    def __reduce__(self):
        return (Path.touch, (Path("exploded"),))


@pytest.mark.parametrize("kind", ["truncated", "foreign", "pickle"])
def test_a_bad_checkpoint_is_refused_and_never_unpickled(workplace, kind):
    demo("--name", "one", "--epochs", "2")
    path = workplace / "runs" / "demo" / "one" / "checkpoints" / "last.ckpt"
    if kind == "truncated":
        path.write_bytes(path.read_bytes()[:-200])
    elif kind == "foreign":
        torch.save({"state_dict": {}}, path)
    else:
        torch.save({"state_dict": Bomb()}, path)
    expected = {
        "truncated": "not a whole checkpoint",
        "foreign": "not written by this suite",
        "pickle": "cannot be read safely",
    }
    with pytest.raises(UserError, match=expected[kind]):
        demo("--name", "one", "--epochs", "2", "--resume")
    assert not Path("exploded").exists()


@pytest.mark.parametrize("launcher", ["lightning", "torchrun"])
def test_two_processes_reach_the_loss_of_one(workplace, start, launcher):
    options = (*OPTIONS, "--accelerator", "cpu", "--epochs", "2")
    command = (*options, "--name", "two", "--devices", "2")
    if launcher == "torchrun":
        process = start(
            "--nproc-per-node", "2", "-m", "lab.demo.train", *command, module="torch.distributed.run"
        )
    else:
        process = start(*command)
    output = process.communicate(timeout=180)[0]
    assert process.returncode == 0, output
    assert output.count("run folder") == 1, output
    demo("--name", "one", "--accelerator", "cpu", "--epochs", "2")
    one, two = final_state(workplace / "runs/demo/one"), final_state(workplace / "runs/demo/two")
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=1e-4, atol=1e-6)
    for single, double in zip(
        metrics(workplace / "runs/demo/one"), metrics(workplace / "runs/demo/two"), strict=True
    ):
        assert float(double["loss"]) == pytest.approx(float(single["loss"]), rel=1e-5)
        assert float(double["error"]) == pytest.approx(float(single["error"]), rel=1e-5)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda content: content.pop("loops"), "lacks loops"),
        (lambda content: content.update(optimizer_states=[]), "lacks optimizer_states"),
        (lambda content: content.update(state_dict={"x": torch.zeros(2)}), "does not fit this run"),
        (lambda content: content["callbacks"].update(Metrics={}), "lacks Metrics"),
        (lambda content: content["callbacks"].update(Metrics={"rows": []}), "does not fit this run"),
    ],
    ids=["no loops", "no optimiser", "other weights", "no metrics", "no time"],
)
def test_a_checkpoint_with_parts_missing_is_a_sentence(workplace, damage, said):
    demo("--name", "one", "--epochs", "2")
    path = workplace / "runs" / "demo" / "one" / "checkpoints" / "last.ckpt"
    content = torch.load(path, weights_only=True)
    damage(content)
    torch.save(content, path)
    with pytest.raises(UserError, match=said):
        demo("--name", "one", "--epochs", "2", "--resume")


@pytest.mark.parametrize(
    ("name", "text"), [("config.yaml", "- 1"), ("manifest.json", "[]"), ("manifest.json", "{")]
)
def test_a_run_whose_files_are_damaged_is_a_sentence(workplace, name, text):
    demo("--name", "one", "--epochs", "1")
    path = workplace / "runs" / "demo" / "one" / name
    path.write_text(text)
    with pytest.raises(UserError, match=name):
        demo("--name", "one", "--epochs", "1", "--resume")
    with pytest.raises(UserError, match=name):
        finished_runs(TrainConfig)
