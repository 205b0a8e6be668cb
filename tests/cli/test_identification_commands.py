"""``tauloop identify``, ``excite``, ``regroup`` and ``subtract``: what they print, write and refuse."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import problems, run, run_json, text_of
from extras import extra
from kills import IDENTIFIED, PENDULUM, prepare
from plots_alike import require_alike

import tauloop as tl
from tauloop import Model, load
from tauloop.display import Plot, read_record
from tauloop.identification import PreparationOptions
from tauloop.identification.excitation.criteria import EXCITATION_CRITERIA
from tauloop.identification.excitation.design import ExcitationOptions, plan_excitation
from tauloop.identification.excitation.limits import ExcitationLimits
from tauloop.identification.excitation.problem import ExcitationTask
from tauloop.logs import read_log, samples, write_log
from tauloop.motion import FourierSeries

PNG = b"\x89PNG"
FILTER = ("--cutoff", 40, "--trim", 10)
EXCITE = (
    *(
        "plan",
        "excitation",
        "five_bar",
        "--harmonics",
        "3",
        "--period",
        "3",
        "--stroke",
        "0.3",
        "--max-velocity",
        "3",
    ),
    *("--max-acceleration", "20", "--random", "20", "--starts", "0", "--rate", "200"),
)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of a five-bar's stroke."""
    folder = tmp_path_factory.mktemp("inputs")
    prepare(folder)
    return folder / "log.csv"


def test_identify_writes_machine_figure_and_result(log: Path, tmp_path: Path) -> None:
    extra("cvxpy")
    machine, figure, document = tmp_path / "m.yaml", tmp_path / "fit.png", tmp_path / "fit.json"
    files = ("--out", machine, "--out", figure, "--out", document)
    words = ("identify", "five_bar", log, *FILTER, "--consistent")
    text = text_of(*words, *files, code=None)
    assert "Physically consistent parameters" in text
    assert figure.read_bytes().startswith(PNG)
    content = json.loads(document.read_text(encoding="utf-8"))
    parameters = content["consistent"]["regressor_parameters"]
    again = tl.Model(load(machine))
    assert {
        p.name: value for p, value in zip(again.parameters, again.pi.tolist(), strict=True)
    } == parameters


def test_track_is_its_function_and_writes_c_figure_and_page(log: Path, tmp_path: Path) -> None:
    fit, track, figure = tmp_path / "fit.json", tmp_path / "track.csv", tmp_path / "track.png"
    run("identify", "five_bar", log, *FILTER, "--out", fit, code=None)
    words = (
        "log",
        "track",
        "five_bar",
        log,
        "--max-payload",
        "500 g",
        "--friction-time",
        "2 min",
        fit,
    )
    options = tl.TrackOptions(max_payload=0.5, friction_time=120.0)
    result = tl.track_parameters(load("five_bar"), log, fit, options)
    assert run_json(*words, code=None) == json.loads(json.dumps(result.as_dict()))
    files = (
        "--out",
        track,
        "--out",
        figure,
        "--out",
        tmp_path / "c",
        "--out",
        tmp_path / "track.json",
    )
    text = text_of(*words, *files, code=None)
    assert "payload" in text
    assert "the filters delay estimates by" in text
    assert figure.read_bytes().startswith(PNG)
    pieces = read_record(tmp_path / "track.json").pieces
    plots = [piece for piece in pieces if isinstance(piece, Plot)]
    assert [trace.style for plot in plots for trace in plot.traces] == ["band"] * len(result.names)
    for plot in plots:
        require_alike(plot)
    estimates = samples(read_log(track), "estimate", ["payload"])[:, 0]
    assert estimates == pytest.approx(result.of("payload")[0])
    assert (tmp_path / "c" / "five_bar_tracker.c").is_file()
    run("report", tmp_path / "track.json", "--out", tmp_path / "page.html")
    assert "Tracked payload" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.nightly
def test_the_json_of_identify_with_formulas_is_the_functions(log: Path) -> None:
    """Formulas are found again at other lengths, which takes eight seconds."""
    options = tl.IdentificationOptions(
        preparation=PreparationOptions(cutoff=40.0, trim=10), regroup=True
    )
    result = tl.identify(load("five_bar"), log, options)
    assert (
        run_json("identify", "five_bar", log, *FILTER, "--regroup", code=None) == result.as_dict()
    )
    assert "Base parameters as formulas" in text_of(
        "identify", "five_bar", log, *FILTER, "--regroup", code=None
    )


def test_words_of_identify_that_cannot_be_read_are_told_at_once() -> None:
    words = "--known tip_mass --scan-cutoffs 20;40 --scan-orders 1.5 --stribeck a=1 --stribeck a=2".split()
    assert [
        f"{problem['where']}: {problem['what']}"
        for problem in problems("identify", "five_bar", "l.csv", *words)
    ] == [
        "--scan-orders: '1.5' is not a whole number",
        "--scan-cutoffs: '20;40': ';40' is not a unit",
        "--known: 'tip_mass' is not NAME=VALUE",
        "--stribeck: a is given twice",
    ]
    words = "--stribeck tip=1 --asymmetric tip --asymmetric tip --period 3 --hold-out 0.95".split()
    wrong = {problem["where"] for problem in problems("identify", "five_bar", "l.csv", *words)}
    assert wrong == {"--asymmetric", "--period", "--hold-out"}
    assert [
        problem["where"] for problem in problems("identify", "five_bar", "l.csv", "--out", "f.yaml")
    ] == ["--out"]


def test_excite_writes_the_motion_that_its_series_describe(tmp_path: Path) -> None:
    out, figure = tmp_path / "motion.csv", tmp_path / "motion.png"
    document = run_json(*EXCITE, "--out", out, "--out", figure)
    motion = read_log(out)
    channels = document["channels"]
    again = FourierSeries(
        center=np.array([channel["center"] for channel in channels]),
        mu=np.array([channel["mu"] for channel in channels]),
        nu=np.array([channel["nu"] for channel in channels]),
        period=document["period_s"],
    ).sample(motion["time"].to_numpy())
    assert len(again.time) == 600
    names = [channel["name"] for channel in channels]
    assert samples(motion, "acceleration", names) == pytest.approx(again.acceleration, abs=1e-9)
    assert figure.stat().st_size > 10_000
    assert "comparable only if columns" in text_of(*EXCITE, "--stated-condition", "21.06")


def test_excite_refuses_files_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr(tl, "plan_excitation", never)
    files = (
        "--out",
        tmp_path / "missing" / "motion.csv",
        "--out",
        tmp_path / "motion.tiffy",
        "--rate",
        0,
    )
    text = text_of("plan", "excitation", "five_bar", *files, code=2)
    for part in (
        "motion.tiffy' does not have the extension of a file that this command writes",
        "0 Hz, but the fastest term",
        "No such file or directory",
    ):
        assert part in text
    (tmp_path / "folder.csv").mkdir()
    assert "is a folder" in text_of(
        "plan", "excitation", "five_bar", "--out", tmp_path / "folder.csv", code=2
    )
    # nothing is left by the trial
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.csv"]


def test_words_of_excite_that_cannot_be_read_are_told_at_once() -> None:
    words = (
        "--iterations",
        0,
        "--random",
        0,
        "--stroke",
        "1 kg",
        "--max-velocity",
        "elbow=x",
        "--criterion",
        "beauty",
    )
    text = " ".join(
        f"{problem['where']}: {problem['what']}"
        for problem in problems("plan", "excitation", "five_bar", *words)
    )
    for part in (
        "--iterations: is 0",
        "--random: is 0",
        "--stroke: '1 kg' is a mass",
        "--max-velocity: 'x' is not a number",
    ):
        assert part in text
    assert "beauty" in text


def test_regroup_names_a_product_that_is_none() -> None:
    assert (
        "m9"
        in run(
            "model", "base-parameters", "four_bar", "--products", "m9 * crank_length", code=2
        ).stderr
    )


def test_link_parameters_prints_what_it_bounds_and_its_json_is_the_functions(
    tmp_path: Path,
) -> None:
    extra("cvxpy")
    machine, estimates = tmp_path / "pendulum.yaml", tmp_path / "identified.json"
    machine.write_text(PENDULUM, encoding="utf-8")
    estimates.write_text(json.dumps(IDENTIFIED), encoding="utf-8")
    assert "family 1: " in text_of("model", "link-parameters", machine, estimates)
    seen: list[tuple[int, int]] = []
    known = tl.LinkOptions(known={"m": "2 kg"})
    links = tl.link_parameters(
        load(machine), estimates, known, progress=lambda done, total: seen.append((done, total))
    )
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]
    words = ("model", "link-parameters", machine, estimates, "--known", "m=2 kg")
    assert run_json(*words) == json.loads(json.dumps(links.as_dict()))


def test_subtract_says_what_stays_and_what_goes(log: Path, tmp_path: Path) -> None:
    signals = read_log(log)
    speed = np.gradient(signals["position.motor_1"].to_numpy(), signals["time"].to_numpy())
    for quantity in ("velocity", "temperature"):
        attributes = {
            "quantity": quantity,
            "channel": "motor_1",
            "units": "rad/s",
            "source": "a test",
        }
        signals = signals.assign({f"{quantity}.motor_1": (("time",), speed, attributes)})
    connected, out = write_log(tmp_path / "connected.csv", signals), tmp_path / "structure.csv"
    text = text_of("log", "subtract", connected, log, "--out", out, code=None)
    assert "velocities are those of the connected run: motor_1;" in text
    assert "(neither motion nor force): temperature.motor_1" in text
    assert samples(read_log(out), "velocity")[:, 0] == pytest.approx(speed)


def test_the_json_of_excite_is_the_functions(tmp_path: Path) -> None:
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    words = ["--harmonics", 3, "--period", 3, "--stroke", "0.3", "--random", 12, "--starts", 0]
    run("plan", "excitation", "five_bar", *words, "--out", first)
    model = Model(load("five_bar"))
    ports = model.actuators.ports
    names = ports.position.columns
    center = float(ports.at(model.assembly.q)[0])
    limits = ["--max-velocity", f"{names[0]}=3,{names[1]}=172 deg/s", "--max-acceleration", "20"]
    held = [
        "--hold",
        f"{names[0]}={center!r}",
        "--previous-motions",
        first,
        "--criterion",
        "determinant",
        "--no-rests",
        "--seed",
        3,
    ]
    document = run_json("plan", "excitation", "five_bar", *words, *limits, *held, code=None)
    speed = {names[0]: 3.0, names[1]: float(np.radians(172))}
    task = ExcitationTask(
        harmonics=3,
        period=3.0,
        limits=ExcitationLimits(stroke=0.3, max_velocity=speed, max_acceleration=20.0),
        hold={names[0]: center},
        rests=False,
    )
    criterion = EXCITATION_CRITERIA["determinant"]
    options = ExcitationOptions(
        task=task, random=12, starts=0, previous_motions=(first,), criterion=criterion, seed=3
    )
    excitation = plan_excitation(load("five_bar"), options)
    assert document == json.loads(json.dumps(excitation.as_dict()))
    assert excitation.write_log(second, 100.0) == second
