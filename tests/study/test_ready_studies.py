"""The studies of `examples/studies` read, and small ones of their kind say what their functions say."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compilers
from extras import extra
from kills import prepare

import tauloop as tl
from tauloop.cli.commands import COMMANDS
from tauloop.common.names.deprecated import COMMANDS as OLD_COMMANDS
from tauloop.drives import load_drive
from tauloop.identification import BootstrapOptions, bootstrap_log
from tauloop.study import StudyFolder, loads_study
from tauloop.study.calculations import CALCULATIONS, scalar
from tauloop.study.option_texts import options_from

EXAMPLES = Path(__file__).parents[2] / "examples" / "studies"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.yaml"))
#: Commands whose results no study computes, and why.
NO_STUDY = {
    **dict.fromkeys(
        ("demo", "report", "view", "env doctor", "env cache", "list", "env schema"),
        "about this computer, or pages",
    ),
    **dict.fromkeys(("new", "model equations", "convert"), "write files of their own"),
    **dict.fromkeys(
        (
            *("export c", "export controller", "export fmu", "export linuxcnc", "export ros2"),
            *("export transmission", "export compensation", "accuracy compensation-table"),
        ),
        "write files of their own",
    ),
    "log describe": "describes one log",
    "log subtract": "writes a log of two",
    "log drive-stiffness": "needs a log of both sides of a drive",
    "log track": "follows a log over time, from a saved fit",
    "design motors": "takes a table of a motion",
    "design certify": "has a study of its own: one box after the other",
    "design synthesize": "is a search of its own, with checkpoints",
    **dict.fromkeys(
        (
            *("stiffness", "vibration", "accuracy tolerances", "accuracy compensate"),
            "design tolerances",
            *("accuracy thermal", "accuracy compliance"),
        ),
        "take several poses in Python",
    ),
    "run stream": "shows a motion over time",
    "run plant": "counts and times of a clock",
    **dict.fromkeys(("study run", "study show"), "is about one"),
}
#: What makes each study small.
SMALLER = (
    (r"samples: 1024", "samples: 8"),
    (r"steps: 20", "steps: 2"),
    (r"numbers: \d+", "numbers: 3"),
    (r"poses: 200", "poses: 20"),
    (r"resolution: 0.02", "resolution: 0.1"),
    (r'budget: "60"', 'budget: "8"'),
    (r'random: "200"', 'random: "20"'),
)


def test_every_command_can_be_computed_or_has_its_reason():
    beside = {"accuracy", "bootstrap", "fold-scores", "working-modes"}
    computed = {OLD_COMMANDS.get(name, name) for name in set(CALCULATIONS) - beside}
    assert {name.split(" --")[0] for name in computed} | set(NO_STUDY) == set(COMMANDS)
    for name, command in CALCULATIONS.items():
        assert callable(command.function), name
        assert command.option_names, name


@pytest.mark.parametrize("name", NAMES)
def test_an_example_reads(name: str):
    study = tl.load_study(EXAMPLES / f"{name}.yaml")
    assert study.count >= 2
    assert study.scalars


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("studies")
    prepare(folder)
    shutil.copy(folder / "log.csv", folder / "later.csv")
    return folder


BY_DAY = ("bootstrap",)


@pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none here")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in BY_DAY else [pytest.mark.nightly]) for name in NAMES],
)
def test_a_small_study_has_the_numbers_of_its_function(name: str, inputs: Path, tmp_path: Path):
    extra("pyarrow")
    text = (EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")
    if "sobol" in text:
        extra("SALib")
    for before, after in SMALLER:
        text = re.sub(before, after, text)
    study = loads_study(text, name, inputs)
    result = tl.run_study(study, tmp_path / "s")
    assert result.samples == study.count
    assert result.problems == {}
    command = CALCULATIONS[study.result]
    if name == "sensitivity":
        assert len(result.sobol) == 4 * len(result.scalars)
        return
    machine = load_drive(study.machine) if command.is_line else study.mechanism
    last = study.count - 1
    sample = {item.name: item.values[-1] for item in study.variations}
    texts = dict(study.options) | {
        k.removeprefix("options."): v for k, v in sample.items() if k.startswith("options.")
    }
    changed = {name: sample[name] for name in study.parameters}
    machine = machine.with_values(changed) if changed else machine
    more = {key: texts.pop(key) for key in command.arguments if key in texts}
    log = [sample["log"]] if "log" in sample else []
    data = command.function(
        machine, *log, options=options_from(command.options, texts), **more
    ).as_dict()
    kept = StudyFolder(tmp_path / "s")
    for scalar_name, path in study.keep.items():
        assert kept.column(f"output.{scalar_name}")[last] == scalar(
            tl.common.result.plain(data), path
        )


@pytest.mark.parametrize(
    ("options", "name", "text", "remedy"),
    [
        (tl.VerifyOptions, "max_condition", "large", "give a number"),
        (tl.VerifyOptions, "states", "1.5", "give a whole number"),
    ],
)
def test_a_text_of_the_wrong_type_names_the_right_one(
    options: type, name: str, text: str, remedy: str
) -> None:
    with pytest.raises(tl.InputError) as caught:
        options_from(options, {name: text})
    assert caught.value.problems == (
        tl.Problem(name, f"{text!r} is not {remedy.removeprefix('give ')}", remedy),
    )


@pytest.mark.nightly
@pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none here")
def test_a_bootstrap_scatters_as_the_errors_say(inputs: Path):
    """White errors: blocks that are drawn pull the parameters apart by their deviations."""
    machine, draws = tl.load("five_bar"), []
    log = inputs / "log.csv"
    rng = np.random.default_rng(3)
    noisy = tl.logs.read_log(log)
    for name in [key for key in noisy if str(key).startswith("force.")]:
        noisy[name] = noisy[name] + 0.05 * rng.normal(size=noisy[name].shape)
    for draw in range(150):
        draws.append(bootstrap_log(machine, noisy, BootstrapOptions(draw=draw, blocks=20)))
    fit = tl.identify(machine, noisy, tl.IdentificationOptions(errors="independent")).identification
    names = list(draws[0].values)
    np.testing.assert_allclose(list(draws[0].values.values()), fit.values, rtol=1e-9)
    values = np.array([list(item.values.values()) for item in draws[1:]])
    ratio = values.std(axis=0) / [draws[0].deviations[name] for name in names]
    assert 0.6 < np.median(ratio) < 1.6
    assert draws[5].drawn != draws[6].drawn
