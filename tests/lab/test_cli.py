"""The command line: where values come from, and what a mistake is answered with."""

import importlib
import os
import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from lab import cli, presets
from lab.config import ExperimentConfig, as_plain_dict, write_yaml
from lab.errors import UserError, nearest
from lab.registry import Entry, Option, Registry


@dataclass
class Options:
    """Options for these tests."""

    nu: float = 1e-3
    """Viscosity."""
    n_train: int = 3
    """Number of training scans."""
    model: Literal["monarch", "fourier"] = "monarch"
    final_time: float | None = None
    resume: bool = False


@dataclass
class ShowOptions:
    """One positional argument."""

    file: Path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]):
    """Run a command table; return exit status, the config the command got, and what was said on stderr."""

    def call_command(*words: str) -> tuple[int, Any, str]:
        got: list[Any] = []

        def main(config: Options) -> None:
            """Train."""
            got.append(config)

        def show(config: ShowOptions) -> None:
            """Show."""
            got.append(config)

        status = cli.run("python -m pde.train", {"": main, "show": show}, words)
        return status, got[0] if got else None, capsys.readouterr().err

    return call_command


def test_flags_are_dashed_and_bools_are_bare(call):
    assert call("--nu", "1e-4", "--n-train", "5", "--resume")[1] == Options(nu=1e-4, n_train=5, resume=True)
    assert call("--n_train=5", "--resume=false")[1] == Options(n_train=5)
    assert call("--final-time", "2.5")[1].final_time == 2.5


@dataclass
class ListOptions:
    """Two lists and a number."""

    models: list[str] = field(default_factory=list)
    nus: list[float] = field(default_factory=list)
    seed: int = 0


@dataclass
class FileAndList:
    """A positional argument and a list."""

    file: Path
    models: list[str] = field(default_factory=list)


@pytest.mark.parametrize(
    "words",
    [
        ["--models", "mno", "fno", "--nus", "1e-3", "1e-5", "--seed", "2"],
        ["--models", "mno,fno", "--seed", "2", "--nus", "1e-3,1e-5"],
        ["--models=mno,fno", "--nus", "[1e-3,", "1e-5]", "--seed", "2"],
        ["--models", "[mno,fno]", "--nus", "[1e-3,1e-5]", "--seed=2"],
    ],
)
def test_lists_are_words_or_commas_or_brackets(words):
    wanted = ListOptions(models=["mno", "fno"], nus=[1e-3, 1e-5], seed=2)
    assert cli.parse(ListOptions, words, prog="x") == wanted


@dataclass
class OptionalList:
    """A list that need not be given."""

    accs: list[float] | None = None


@pytest.mark.parametrize(
    ("words", "accs"),
    [([], None), (["--accs", "2,4"], [2.0, 4.0]), (["--accs=2,4"], [2.0, 4.0]), (["--accs", "null"], None)],
)
def test_a_list_that_may_be_absent_is_written_like_any_other(words, accs):
    assert cli.parse(OptionalList, words, prog="x").accs == accs


def test_a_word_after_a_list_is_the_positional_argument_where_there_is_one():
    config = cli.parse(FileAndList, ["--models", "mno,fno", "notes.h5"], prog="x")
    assert (config.models, config.file) == (["mno", "fno"], Path("notes.h5"))


def test_the_first_word_chooses_the_command(call):
    assert call("show", "a.h5")[1] == ShowOptions(Path("a.h5"))
    assert call()[1] == Options()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--n-trian", "5"], "there is no option --n-trian (did you mean --n-train?)"),
        (["--n-train", "many"], "--n-train takes a whole number, not 'many'"),
        (["--nu", "thick"], "--nu takes a number, not 'thick'"),
        (["--final-time", "late"], "--final-time takes a number, not 'late'"),
        (
            ["--model", "monarc"],
            "--model takes one of monarch, fourier, not 'monarc' (did you mean monarch?)",
        ),
        (["--config", "absent.yaml"], "absent.yaml', but there is no such file"),
        (["--nu"], "--nu: expected one argument"),
        (["--n-train", str(2**64)], f"--n-train cannot be as large as {2**64}."),
        (["shwo", "a.h5"], "there is no command 'shwo' (did you mean show?)"),
        (["show"], "file is missing"),
    ],
)
def test_a_mistake_is_one_line_that_quotes_the_flag(call, words, expected):
    status, config, said = call(*words)
    assert (status, config) == (2, None)
    assert expected in said
    assert said.startswith("error: ")
    assert said.count("\n") == 1


def test_a_transposition_is_understood_before_a_near_word():
    assert nearest("--modle", ["--modes", "--model"]) == " (did you mean --model?)"


def test_config_file_lies_between_defaults_and_flags(call, tmp_path):
    file = tmp_path / "options.yaml"
    file.write_text("nu: 0.5\nn_train: 7\n")
    assert call("--config", str(file), "--n-train", "9")[1] == Options(nu=0.5, n_train=9)
    file.write_text("n_trian: 7\n")
    status, _, said = call("--config", str(file))
    assert status == 2
    assert "n_trian" in said
    assert "n_train" in said


ALIASES = "a0: &a0 [x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]\n" for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("n_train: null\n", "--n-train needs a value, not null"),
        (f"nu: {10**400}\n", "--nu cannot be as large as 1000"),
        ("", "holds no options; give one per line, such as `seed: 1`"),
        ("- 1\n", "holds no options"),
        ("n_train: 1\nn_train: 2\n", "'n_train' stands in it 2 times"),
        (ALIASES, "more than 100,000 entries"),
        ("n_train: [1\n", "is not valid YAML"),
    ],
)
def test_an_impossible_configuration_is_one_line(call, tmp_path, content, expected):
    file = tmp_path / "options.yaml"
    file.write_text(content)
    status, config, said = call("--config", str(file))
    assert (status, config) == (2, None)
    assert expected in said
    assert said.count("\n") == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_is_no_configuration(call, tmp_path):
    os.mkfifo(tmp_path / "options.yaml")
    assert call("--config", str(tmp_path / "options.yaml"))[0] == 2


def test_user_errors_of_the_command_are_one_line(capsys):
    def main(config: Options) -> None:
        raise UserError("the file is gone; bring it back.")

    assert cli.run("x", {"": main}, []) == 2
    assert capsys.readouterr().err == "error: the file is gone; bring it back.\n"


WIDTH = Option("width", int, 20, "Channels.", at_least=1)


@dataclass(frozen=True)
class Preset(ExperimentConfig):
    """An application with presets of its own."""

    app: ClassVar[str] = "testing"
    package: ClassVar[str] = "testing"
    aliases: ClassVar[dict[str, str]] = {"n_epochs": "epochs"}
    registry: ClassVar[Registry] = Registry(
        "testing",
        Entry("wide", "a wide one", "x:Wide", (WIDTH, Option("norm", bool, False, "Normalise."))),
        Entry("wider", "a wider one", "x:Wider", (WIDTH.with_default(43),)),
        Entry("fixed", "one without options", "x:Fixed"),
    )

    model: str = "wide"
    """What to train."""


@pytest.fixture
def preset_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(presets, "presets_dir", lambda app: tmp_path / app)
    folder = tmp_path / "testing"
    folder.mkdir()
    (folder / "laptop.yaml").write_text("epochs: 2\nlr: 0.5\nbatch_size: 8\nwidth: 6\n")
    (folder / "smoke.yaml").write_text("epochs: 1\n")
    return folder


def test_values_rise_from_defaults_by_preset_and_file_to_flags(preset_folder, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("preset: laptop\nlr: 0.25\n")
    config = cli.parse(Preset, ["--config", str(file), "--batch-size", "4"], prog="x")
    default = Preset()
    assert (config.epochs, config.lr, config.batch_size) == (2, 0.25, 4)
    assert config.weight_decay == default.weight_decay
    assert cli.parse(Preset, ["--config", str(file), "--preset", "smoke"], prog="x").epochs == 1


def test_auto_takes_laptop_without_an_accelerator_and_says_so(preset_folder, monkeypatch, capsys):
    monkeypatch.setattr("torch.accelerator.is_available", lambda: False)
    assert cli.parse(Preset, [], prog="x").preset == "laptop"
    assert capsys.readouterr().out.startswith("preset laptop: chosen because no accelerator was found")


def test_a_written_config_reads_back_the_same(preset_folder, tmp_path):
    config = cli.parse(Preset, ["--preset", "laptop", "--lr", "3e-5"], prog="x")
    write_yaml(config, tmp_path / "config.yaml")
    again = cli.parse(Preset, ["--config", str(tmp_path / "config.yaml")], prog="x")
    assert as_plain_dict(again) == as_plain_dict(config)


@pytest.mark.parametrize(
    ("values", "flag"),
    [
        ({"epochs": 0}, "--epochs"),
        ({"lr": 0.0}, "--lr"),
        ({"weight_decay": -1.0}, "--weight-decay"),
        ({"batch_size": 3, "devices": 2}, "--batch-size"),
        ({"grad_clip": 0.0}, "--grad-clip"),
        ({"threads": 0}, "--threads"),
        ({"threads": 2**40}, "--threads must be at most 32768"),
    ],
)
def test_impossible_values_name_their_flag(values, flag):
    with pytest.raises(UserError, match=flag):
        Preset(**values)


def parsed(*words: str) -> Preset:
    config: Preset = cli.parse(Preset, ["--preset", "smoke", *words], prog="python -m testing.train")
    return config


def test_a_model_has_its_own_options_and_defaults(preset_folder):
    assert parsed().options == {"width": 20, "norm": False}
    assert parsed("--norm", "--width", "8").options == {"width": 8, "norm": True}
    assert parsed("--model", "wider").options == {"width": 43}
    assert parsed("--model", "fixed").options == {}


def test_a_preset_speaks_only_of_options_that_the_model_has(preset_folder):
    both = [
        cli.parse(Preset, ["--preset", "laptop", "--model", name], prog="x") for name in ("wide", "fixed")
    ]
    assert [config.options for config in both] == [{"width": 6, "norm": False}, {}]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--model", "fixed", "--width", "8"],
            "--width does nothing with --model fixed; it belongs to wide, wider",
        ),
        (
            ["--model", "wdie"],
            "there is no model 'wdie' (did you mean wide?); choose one of wide, wider, fixed",
        ),
        (["--width", "0"], "--width must be at least 1, not 0"),
        (["--width", "many"], "--width takes a whole number, not 'many'"),
    ],
)
def test_a_wrong_option_of_a_model_is_one_sentence(preset_folder, words, said):
    with pytest.raises(UserError) as error:
        parsed(*words)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            "options:\n  width: 8\n",
            "options stand beside the others in a configuration: width, not options.width",
        ),
        ("widht: 8\n", "no entry 'widht' (did you mean width?)"),
    ],
)
def test_a_wrong_option_of_a_model_in_a_file_is_one_sentence(preset_folder, tmp_path, content, said):
    (tmp_path / "options.yaml").write_text(content)
    with pytest.raises(UserError) as error:
        parsed("--config", str(tmp_path / "options.yaml"))
    assert said in str(error.value)


@pytest.mark.parametrize("kind", [int, int | None])
def test_an_option_that_may_be_absent_has_its_type_all_the_same(kind):
    option = Option("blocks", kind, None, "Blocks.", at_least=2)
    option.check(None)
    with pytest.raises(UserError, match="--blocks takes a value of type int, not '4'"):
        option.check("4")


@pytest.mark.parametrize(("word", "meant"), [("wide", " (did you mean --model wide?)"), ("widest", "")])
def test_a_word_where_only_options_belong_is_explained(preset_folder, capsys, word, meant):
    def train(config: Preset) -> None:
        raise AssertionError

    assert cli.run("python -m testing.train", {"": train}, [word]) == 2
    assert f"takes options only, not {word!r}{meant}; --help lists them." in capsys.readouterr().err


def test_an_alias_is_another_name_of_an_option(preset_folder):
    assert parsed("--n-epochs", "7").epochs == parsed("--n_epochs=7").epochs == 7


def test_options_never_change_once_they_are_parsed(preset_folder):
    config = parsed()
    with pytest.raises(FrozenInstanceError):
        config.epochs = 3  # type: ignore[misc]


def test_help_is_grouped_and_says_whose_option_it_is(preset_folder, capsys):
    with pytest.raises(SystemExit):
        cli.parse(Preset, ["--help"], prog="x")
    text = " ".join(capsys.readouterr().out.split())
    order = [text.index(f"{heading} options:") for heading in ("run", "model", "training", "hardware")]
    assert order == sorted(order)
    assert "wide, wider: Channels. (default: 20; 43 for wider)" in text
    assert "wide: a wide one; wider: a wider one" in text
    assert order[1] < text.index("--norm") < order[2] < text.index("--epochs") < order[3]


APPLICATIONS = {"demo": "lab.demo.config", "pde": "pde.config", "mri": "mri.config", "text": "text.config"}


@pytest.mark.parametrize("app", APPLICATIONS)
@pytest.mark.parametrize("name", ["paper", "laptop", "smoke"])
def test_every_preset_is_a_valid_config_that_differs_from_the_defaults(app, name):
    config_class = importlib.import_module(APPLICATIONS[app]).TrainConfig
    values = presets.read_preset(app, name)
    config = cli.parse(config_class, ["--preset", name], prog="x")
    usual = as_plain_dict(config_class()) | dict.fromkeys(config_class.registry.options())
    assert config.preset == name
    assert {key: value for key, value in values.items() if usual[key] == value} == {}


HELP = """
import runpy, sys
sys.argv = ["x", "--help"]
try:
    runpy.run_module("{module}", run_name="__main__")
except SystemExit:
    pass
heavy = {{"torch", "lightning", "matplotlib", "sigpy", "scipy"}} & set(sys.modules)
assert not heavy, heavy
"""
COMMANDS = (
    "lab.demo.train",
    "lab.demo.eval",
    "lab.demo.table",
    "lab.demo.models",
    "data.navier_stokes",
    "data.knee",
    "data.masks",
    "pde.train",
    "pde.eval",
    "pde.table",
    "pde.models",
    "pde.export",
    "mri.train",
    "mri.eval",
    "mri.table",
    "mri.models",
    "mri.reconstruct",
    "text.train",
    "text.eval",
    "text.table",
    "text.models",
    "mri.export",
)


@pytest.mark.parametrize("module", COMMANDS)
def test_help_imports_nothing_heavy(module, root):
    command = [sys.executable, "-c", HELP.format(module=module)]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "usage" in result.stdout


def test_the_package_py_pde_is_refused_with_a_sentence(tmp_path, root):
    info = tmp_path / "py_pde-0.50.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: py-pde\nVersion: 0.50\n")
    script = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(root)!r}]; import lab"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.returncode != 0
    assert "py-pde 0.50 is installed here" in result.stderr
