"""Logs that lack something: single samples, an axis that stood still, even times; put in on request, and counted.

Oracles: polynomials of third order, which a cubic reproduces; SciPy's spline; the closed formulae
of `planar_arm`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from identifying import identified
from planar_arm import (
    DRIVES,
    FRICTION,
    MACHINE,
    TRUE,
    arm_forces,
    arm_log,
    arm_motion,
    arm_regressor,
)
from scipy.interpolate import CubicSpline

from tauloop import Model, loads
from tauloop.common.errors import InputError, LogError, TauloopError
from tauloop.identification.faults.recording.time_stamps import jitter
from tauloop.identification.regression.from_log import require_channels
from tauloop.logs import FillGaps, Signals, held, read_signals, resampled, samples
from tauloop.logs.log import Channel
from tauloop.logs.matching import MissingChannel

#: Rounding of a file's digits.
SAME = 1e-12
OPTIONS = {"cutoff": 30.0, "trim": 60, "decimation": 2}


def text(rows: list[str]) -> str:
    return "\n".join(["time [s],position.a [rad],force.a [N m]", *rows]) + "\n"


def cubic(t: np.ndarray) -> np.ndarray:
    return np.asarray(0.3 - t + 0.7 * t**2 - 2.0 * t**3)


def rows_of(time: np.ndarray, missing: dict[int, str]) -> list[str]:
    """Rows whose number is in `missing` have that text for their position, or are left out where it is empty."""
    return [
        f"{t!r},{missing.get(k, repr(float(cubic(t))))},{float(t)!r}"
        for k, t in enumerate(time.tolist())
        if missing.get(k) != ""
    ]


@pytest.mark.parametrize("cell", [" ", "nan", "NaN", "inf"])
def test_short_gaps_are_interpolated_on_request_and_counted(tmp_path: Path, cell: str) -> None:
    time = np.arange(50) / 10.0
    path = tmp_path / "log.csv"
    path.write_text(text(rows_of(time, dict.fromkeys((7, 20, 21, 22), cell))), encoding="utf-8")
    with pytest.raises(LogError):
        read_signals(path)
    with pytest.raises(
        LogError, match="3 consecutive samples are missing from row 21 on, but at most 2"
    ):
        read_signals(path, gaps=FillGaps(longest=2))
    log = read_signals(path, gaps=FillGaps(longest=3))
    assert samples(log, "position")[:, 0] == pytest.approx(cubic(time), abs=1e-9)
    assert dict(log.interpolated) == {"position.a": 4}


def test_missing_rows_are_put_in_with_their_times(tmp_path: Path) -> None:
    time = np.arange(50) / 10.0
    path = tmp_path / "log.csv"
    path.write_text(text(rows_of(time, dict.fromkeys((7, 20, 21), ""))), encoding="utf-8")
    with pytest.raises(LogError, match="a gap of"):
        read_signals(path)
    with pytest.raises(LogError, match="a gap of"):
        read_signals(path, gaps=FillGaps(longest=1))
    log = read_signals(path, gaps=FillGaps(longest=2))
    assert log.time == pytest.approx(time, abs=SAME)
    assert samples(log, "position")[:, 0] == pytest.approx(cubic(time), abs=1e-9)
    assert dict(log.interpolated) == {"position.a": 3, "force.a": 3}


@pytest.mark.parametrize(
    ("missing", "what"),
    [
        ({0: "nan"}, "1 sample is missing at the beginning"),
        ({48: "nan", 49: "nan"}, "2 samples are missing at the end"),
        ({5: "n/a"}, "'n/a' is not a number"),
    ],
)
def test_what_no_interpolation_can_mend_is_refused(
    tmp_path: Path, missing: dict[int, str], what: str
) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text(rows_of(np.arange(50) / 10.0, missing)), encoding="utf-8")
    with pytest.raises(LogError, match=what):
        read_signals(path, gaps=FillGaps(longest=5))
    path.write_text(text(["0,1,2", "nan,1,2", "0.2,1,2", "0.3,1,2"]), encoding="utf-8")
    with pytest.raises(LogError, match="1 of 4 time stamps are missing"):
        read_signals(path, gaps=FillGaps(longest=5))


def test_a_gap_beside_a_gap_is_a_line(tmp_path: Path) -> None:
    """One sample stands between two gaps: no two neighbors for a cubic."""
    time = np.arange(10) / 10.0
    path = tmp_path / "log.csv"
    path.write_text(text(rows_of(time, {4: "nan", 6: "nan"})), encoding="utf-8")
    values = samples(read_signals(path, gaps=FillGaps()), "position")[:, 0]
    assert values[4] == pytest.approx(0.5 * (cubic(time[3]) + cubic(time[5])), abs=1e-9)


def test_even_times_by_a_spline_through_the_stamps() -> None:
    rng = np.random.default_rng(3)
    motion = arm_motion(2000)
    stamps = motion[0] + 1e-3 * rng.uniform(-1.0, 1.0, 2000)
    position = np.stack([np.interp(stamps, motion[0], q) for q in motion[1].T], axis=1)
    log = arm_log((stamps, position), position, noise=0.0, encoder=0.0)
    assert jitter(log, DRIVES) != ()
    even = resampled(log)
    assert even.time == pytest.approx(np.linspace(stamps[0], stamps[-1], 2000), abs=SAME)
    expected = CubicSpline(stamps, position[:, 1])(even.time)
    assert samples(even, "position", ("motor_2",))[:, 0] == pytest.approx(expected, abs=SAME)
    assert jitter(even, DRIVES) == ()


def test_an_axis_absent_from_the_log_is_held() -> None:
    """The elbow stands at 40 degrees: the shoulder's torque is that of one body, by the formulae."""
    t, q, v, a = arm_motion(4000)
    angle = np.deg2rad(40.0)
    still = np.array([1.0, 0.0])
    motion = (t, q * still + np.array([0.0, angle]), v * still, a * still)
    forces = arm_regressor(*motion[1:]) @ TRUE + FRICTION * (motion[2] + np.sign(motion[2]))
    whole = arm_log(motion, forces)
    log = Signals(
        time=t,
        channels=tuple(channel for channel in whole.channels if channel.name != "position.motor_2"),
    )
    with pytest.raises(LogError) as caught:
        identified(loads(MACHINE), log, **OPTIONS)
    assert any("--hold motor_2=VALUE" in problem.remedy for problem in caught.value.problems)
    document = identified(loads(MACHINE), log, **OPTIONS, hold={"motor_2": "40 deg"})
    assert document["status"] == "ok", document["findings"]
    assert any("held on request: motor_2 at 0.698132 rad" in line for line in document["repairs"])
    names = [f"link{k}.{part}" for k in (1, 2) for part in ("m", "mcx", "mcy", "Izz")]
    true = dict(zip(names, TRUE, strict=True))
    rows = [channel for channel in document["base_parameters"] if channel["representative"] in true]
    assert len(rows) > 3
    for row in rows:
        value = true[row["representative"]]
        value += sum(
            term["coefficient"] * true.get(term["parameter"], 0.0) for term in row["terms"]
        )
        assert abs(row["value"] - value) < 5.0 * row["standard_deviation"], row["name"]
    # where the reference pose has it: at zero, which the torques contradict
    elsewhere = identified(loads(MACHINE), log, **OPTIONS, hold={"motor_2": ""})
    assert any("motor_2 at 0 rad" in line for line in elsewhere["repairs"])


def test_holding_what_is_there_or_unknown_is_refused() -> None:
    log = arm_log(arm_motion(500), arm_forces(arm_motion(500)))
    unknown = "is not a position"
    for name, value, what in (("motor_2", 1.0, "is in the log"), ("motor_3", "", unknown)):
        with pytest.raises(TauloopError, match=what):
            identified(loads(MACHINE), log, **OPTIONS, hold={name: value})
    with pytest.raises(TauloopError, match="kg"):
        identified(loads(MACHINE), log, **OPTIONS, hold={"motor_2": "1 kg"})
    with pytest.raises(LogError, match="is in the log"):
        held(log, {"motor_1": (0.0, "rad")})
    with pytest.raises(InputError, match="whole number"):
        FillGaps(longest=0)


def test_gaps_are_counted(tmp_path: Path) -> None:
    log = arm_log(arm_motion(3000), arm_forces(arm_motion(3000)))
    values = log.channels[0].values.copy()
    values[[700, 1500, 1501]] = np.nan
    spoiled = (
        Channel(quantity="position", channel="motor_1", values=values, unit="rad"),
        *log.channels[1:],
    )
    rows = [
        ",".join(["" if np.isnan(x) else repr(float(x)) for x in row])
        for row in np.stack([log.time, *(single.values for single in spoiled)], axis=1)
    ]
    header = ",".join(["time [s]", *(f"{single.name} [{single.unit}]" for single in spoiled)])
    (path := tmp_path / "log.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    with pytest.raises(LogError, match="the cell is empty"):
        identified(loads(MACHINE), path, **OPTIONS)
    document = identified(loads(MACHINE), path, **OPTIONS, fill_gaps=2)
    assert document["status"] == "ok"
    assert document["repairs"] == ["log.csv: 3 missing samples of position.motor_1 interpolated"]


def test_only_missing_positions_get_the_advice_to_hold_an_axis() -> None:
    model, motion = Model(loads(MACHINE)), arm_motion(20)
    signals = arm_log(motion, arm_forces(motion))
    require_channels(model, signals, "joints")
    for quantity, advice in (("position", f"--hold {DRIVES[0]}=VALUE"), ("force", None)):
        kept = [c for c in signals.channels if (c.quantity, c.channel) != (quantity, DRIVES[0])]
        with pytest.raises(LogError) as refused:
            require_channels(model, replace(signals, channels=tuple(kept)), "joints")
        (problem,) = refused.value.problems
        assert isinstance(problem, MissingChannel)
        assert problem.where == f"{quantity}.{DRIVES[0]}"
        assert problem.remedy.partition("; if the axis did not move, give ")[2] == (advice or "")
    wrong_unit = [replace(c, unit="N") if c.quantity == "force" else c for c in signals.channels]
    with pytest.raises(LogError, match="is in N, but the machine needs N m") as refused:
        require_channels(model, replace(signals, channels=tuple(wrong_unit)), "joints")
    assert not any(isinstance(problem, MissingChannel) for problem in refused.value.problems)
