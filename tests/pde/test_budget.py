"""Minutes of training, in epochs and steps."""

from lab import budget
from lab.files import read_json
from lab.trainer import Plan


def test_the_plan_is_recorded_and_a_resumed_run_keeps_it(train_flow, workplace, monkeypatch):
    words = (
        "--model",
        "fno",
        "--width",
        "4",
        "--modes",
        "3",
        "--minutes",
        "0.002",
        "--name",
        "a",
        "--resume",
    )
    monkeypatch.setattr(budget, "fitting", lambda *_: Plan(2, 3))
    assert train_flow(*words) == 0
    manifest = workplace / "runs" / "pde" / "a" / "manifest.json"
    assert read_json(manifest)["plan"] == {"epochs": 2, "epoch_steps": 3}
    assert read_json(manifest)["steps"]["total"] == 6
    monkeypatch.setattr(budget, "fitting", lambda *_: Plan(9, 9))
    assert train_flow(*words) == 0
    assert read_json(manifest)["plan"] == {"epochs": 2, "epoch_steps": 3}
    config = (workplace / "runs" / "pde" / "a" / "config.yaml").read_text()
    assert "epochs: 1\n" in config  # the options stay those that were given


def test_a_trial_leaves_the_model_as_it_was(train_flow, workplace):
    """A budget's trial trains a copy: its run's first steps are those of a run of the same length without a budget."""
    words = ("--model", "fno", "--width", "4", "--modes", "3")
    assert train_flow(*words, "--minutes", "0.002", "--name", "a") == 0
    plan = read_json(workplace / "runs" / "pde" / "a" / "manifest.json")["plan"]
    size = ("--epochs", str(plan["epochs"]), "--epoch-steps", str(plan["epoch_steps"]))
    assert train_flow(*words, *size, "--name", "b") == 0
    weights = [(workplace / "runs" / "pde" / name / "metrics.csv").read_text() for name in ("a", "b")]
    timed = [[line.split(",")[4:] for line in text.splitlines()] for text in weights]
    assert timed[0] == timed[1]
