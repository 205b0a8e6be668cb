"""Many logs, folded by workers from their files, give what `identify` finds with all of them at once."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from extras import extra
from identifying import without_faults
from planar_arm import MACHINE, arm_log, arm_motion

import tauloop as tl
from tauloop.common.errors import IdentificationError, InputError
from tauloop.formats.library import loads
from tauloop.identification import PreparationOptions, TermOptions, read_triangle
from tauloop.logs import write_log
from tauloop.study import StudyFolder

#: Of issue 18: what is folded equals what one machine finds.
SAME = 1e-10
#: Ratio of deviations with the means of the logs' delays and bending to those of a fit to all
#: samples. Without delays and bending it is down to 0.1 for these logs.
LEAST_RATIO, LARGEST_RATIO = 0.5, 1.7
FILTER = PreparationOptions(cutoff=30.0, trim=60, decimation=2)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    folder, model = tmp_path_factory.mktemp("logs"), tl.Model(loads(MACHINE))
    paths = []
    for number, phase in enumerate((0.0, 0.7, 1.4)):
        motion = arm_motion(1200 + 200 * number, phase)
        forces = model.actuators.inverse_dynamics(*motion[1:]).force
        log = arm_log(motion, forces, rng=np.random.default_rng(number))
        paths.append(write_log(folder / f"log_{number}.csv", log.dataset()))
    return tuple(paths)


def parameters_of(
    machine: tl.Mechanism, logs: object, options: tl.IdentificationOptions
) -> tl.identification.MachineIdentification:
    """Return the identification of all logs at once, whose parameters and errors are compared."""
    with without_faults():
        return tl.identify(machine, logs, options)  # type: ignore[arg-type]


def require_same(
    folded: tl.study.FoldedLogs, whole: tl.identification.MachineIdentification
) -> None:
    mine, fit = folded.identification, whole.identification
    assert mine.base.names == fit.base.names
    np.testing.assert_allclose(mine.estimate.values, fit.values, rtol=SAME)
    ratios = mine.estimate.standard_deviations / fit.standard_deviations
    if folded.errors == "autocorrelated":
        assert (ratios > LEAST_RATIO).all()
        assert (ratios < LARGEST_RATIO).all()
    else:
        np.testing.assert_allclose(ratios, 1.0, rtol=SAME)
    np.testing.assert_allclose(mine.training, [item.rmse for item in fit.training], rtol=SAME)
    np.testing.assert_allclose(mine.held_out, [item.rmse for item in fit.held_out], rtol=SAME)


BY_NIGHT = [pytest.param(name, marks=[pytest.mark.nightly]) for name in ("independent", "blocks")]


@pytest.mark.parametrize("errors", ["autocorrelated", "decimated", "logs", *BY_NIGHT])
def test_logs_that_are_folded_give_what_identify_finds_with_all(errors, logs, tmp_path):
    extra("pyarrow")
    machine, seen = loads(MACHINE), []
    how = tl.IdentificationOptions(preparation=FILTER, errors=errors, hold_out=0.25)
    options = tl.FoldOptions(identification=how)
    folded = tl.fold_logs(
        machine, logs, tmp_path / "f", options, progress=lambda *done: seen.append(done)
    )
    require_same(folded, parameters_of(machine, logs, how))
    readings = 3 if errors == "autocorrelated" else 1
    assert seen[-1] == (3 * readings, 3 * readings)
    assert folded.logs == 3
    data = folded.as_dict()
    assert data["base_parameters"][0]["name"] == folded.identification.base.names[0]


def test_a_log_that_comes_later_is_added_and_one_that_cannot_be_read_is_named(logs, tmp_path):
    extra("pyarrow")
    machine = loads(MACHINE)
    how = tl.IdentificationOptions(
        preparation=FILTER, errors="logs", terms=TermOptions(known={"link1.m": 1.0})
    )
    first = tl.fold_logs(machine, logs[:2], tmp_path / "two", tl.FoldOptions(identification=how))
    saved = first.write_triangle(tmp_path / "two.npz")
    assert read_triangle(saved).logs == 2
    damaged = tmp_path / "damaged.csv"
    damaged.write_text("time [s],position.nothing [rad]\n0,1\n")
    later = tl.FoldOptions(identification=how, add=saved)
    both = tl.fold_logs(machine, [logs[2], damaged], tmp_path / "later", later)
    assert both.logs == 3
    assert list(both.refused) == [str(damaged)]
    assert both.status.value == "doubtful"
    require_same(both, parameters_of(machine, logs, how))
    missing = tmp_path / "missing.csv"
    with pytest.raises(IdentificationError) as error:
        tl.fold_logs(
            machine, [damaged, missing], tmp_path / "none", tl.FoldOptions(identification=how)
        )
    for problem, log in zip(error.value.problems, (damaged, missing), strict=True):
        assert str(problem).count(str(log)) == 1
    with pytest.raises(IdentificationError, match="give at least one"):
        tl.fold_logs(machine, [], tmp_path / "no", tl.FoldOptions(identification=how))
    with pytest.raises(InputError, match="need the logs of the added file again"):
        tl.fold_logs(machine, logs, tmp_path / "x", tl.FoldOptions(add=saved))


LATER = tl.IdentificationOptions(preparation=FILTER, errors="logs")


@cache
def of_all_logs(logs: tuple[Path, ...]) -> tl.identification.MachineIdentification:
    """What one machine finds with all logs at once."""
    return parameters_of(loads(MACHINE), logs, LATER)


@pytest.fixture(scope="module")
def saved(logs: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A triangle of the first two logs."""
    extra("pyarrow")
    folder = tmp_path_factory.mktemp("saved")
    folded = tl.fold_logs(
        loads(MACHINE), logs[:2], folder / "two", tl.FoldOptions(identification=LATER)
    )
    return folded.write_triangle(folder / "two.npz")


def test_a_log_that_comes_twice_counts_once(logs, saved, tmp_path):
    machine, copy = loads(MACHINE), tmp_path / "copy.csv"
    shutil.copy(logs[1], copy)
    with pytest.raises(InputError, match=r"log_1\.csv is given twice"):
        tl.fold_logs(
            machine, [*logs, logs[1]], tmp_path / "a", tl.FoldOptions(identification=LATER)
        )
    for how in (LATER, tl.IdentificationOptions(preparation=FILTER)):  # read once, and three times
        folded = tl.fold_logs(
            machine, [*logs, copy], tmp_path / how.errors, tl.FoldOptions(identification=how)
        )
        assert folded.refused == {
            str(copy): f"has the same samples as {logs[1]}; each log is used once"
        }
        assert folded.status.value == "doubtful"
        require_same(folded, parameters_of(machine, logs, how))
    added = tl.fold_logs(
        machine, logs[1:], tmp_path / "c", tl.FoldOptions(identification=LATER, add=saved)
    )
    assert added.logs == 3
    assert f"a log of {saved}" in added.refused[str(logs[1])]
    require_same(added, of_all_logs(logs))


def test_a_triangle_of_another_machine_or_of_other_options_is_refused(logs, saved, tmp_path):
    other = PreparationOptions(cutoff=20.0, trim=60, decimation=2)
    cases = (
        (MACHINE.replace("planar_arm", "arm"), LATER, "machine was planar_arm and is arm"),
        (MACHINE.replace("[0.4 m", "[0.45 m"), LATER, r"was 0\.4 and is 0\.45"),
        (MACHINE, replace(LATER, preparation=other), r"cutoff was 30\.0 and is 20\.0"),
        (MACHINE, replace(LATER, errors="blocks"), "errors was logs and is blocks"),
    )
    for number, (text, how, what) in enumerate(cases):
        options = tl.FoldOptions(identification=how, add=saved)
        with pytest.raises(IdentificationError, match=what):
            tl.fold_logs(loads(text), logs[2:], tmp_path / f"{number}", options)
    heavier = loads(MACHINE.replace("mass: 3 kg", "mass: 3.1 kg"))  # masses are unknowns
    added = tl.fold_logs(
        heavier, logs[2:], tmp_path / "m", tl.FoldOptions(identification=LATER, add=saved)
    )
    require_same(added, of_all_logs(logs))


def test_logs_that_come_or_change_in_between_are_read_again_and_the_others_are_not(logs, tmp_path):
    extra("pyarrow")
    machine, mine = loads(MACHINE), [tmp_path / path.name for path in logs]
    for path in mine[:2]:
        shutil.copy(logs[2], path)
    how = replace(LATER, errors="decimated")
    options = tl.FoldOptions(identification=how, study=tl.StudyOptions(resume=True))
    first = tl.fold_logs(machine, mine, tmp_path / "f", options)
    # a copy, and one that is not there
    assert first.refused.keys() == {str(path) for path in mine[1:]}
    parts = StudyFolder(tmp_path / "f" / "reading-1").parts
    before = {part.first: part.path.stat().st_mtime_ns for part in parts()}
    for path, whole in zip(mine[1:], logs[1:], strict=True):
        shutil.copy(whole, path)
    tl.fold_logs(machine, mine, tmp_path / "f", options)
    assert [before.get(part.first) == part.path.stat().st_mtime_ns for part in parts()][:2] == [
        True,
        False,
    ]
    shutil.copy(logs[0], mine[0])
    require_same(
        tl.fold_logs(machine, mine, tmp_path / "f", options), parameters_of(machine, logs, how)
    )
    (tmp_path / "f" / "reading-1" / "whole" / "sample-0000000001.json").write_text('{"arrays": ')
    with pytest.raises(InputError, match="remove the part that contains this sample"):
        tl.fold_logs(machine, mine, tmp_path / "f", options)


def require_the_same_bits(alone: tl.study.FoldedLogs, other: tl.study.FoldedLogs) -> None:
    for name in ("covariance", "values"):
        numbers = [getattr(folded.identification.estimate, name) for folded in (alone, other)]
        np.testing.assert_array_equal(*numbers)


@pytest.mark.nightly
def test_workers_of_a_cluster_fold_what_one_process_folds(logs, tmp_path):
    for name in ("pyarrow", "distributed"):
        extra(name)
    how = tl.IdentificationOptions(preparation=FILTER)
    alone = tl.fold_logs(loads(MACHINE), logs, tmp_path / "one", tl.FoldOptions(identification=how))
    local = tl.FoldOptions(identification=how, study=tl.StudyOptions(scheduler="local", workers=2))
    require_the_same_bits(alone, tl.fold_logs(loads(MACHINE), logs, tmp_path / "cluster", local))


@pytest.mark.nightly
def test_processes_fold_what_one_folds_and_go_on_where_they_stopped(logs, tmp_path):
    extra("pyarrow")
    how = tl.IdentificationOptions(preparation=FILTER)
    alone = tl.fold_logs(loads(MACHINE), logs, tmp_path / "one", tl.FoldOptions(identification=how))
    two = tl.FoldOptions(identification=how, study=tl.StudyOptions(workers=2, resume=True))
    tl.fold_logs(loads(MACHINE), logs, tmp_path / "two", two)
    for part in list((tmp_path / "two" / "reading-2" / "parts").iterdir())[:1]:
        part.unlink()
    again = tl.fold_logs(loads(MACHINE), logs, tmp_path / "two", two)
    require_the_same_bits(alone, again)


def test_options_that_need_all_samples_at_once_are_refused():
    how = tl.IdentificationOptions(consistent=True, estimator="irls")
    with pytest.raises(InputError) as error:
        tl.fold_logs(loads(MACHINE), [], "nowhere", tl.FoldOptions(identification=how))
    assert {problem.where for problem in error.value.problems} == {"consistent", "estimator"}


def test_a_fault_that_only_the_fit_of_a_log_shows_is_reported(logs, tmp_path):
    """A force that is late by a sample and a half has no fault of its channel."""
    extra("pyarrow")
    model = tl.Model(loads(MACHINE))
    time, *motion = arm_motion(1200, 0.3)
    forces = model.actuators.inverse_dynamics(*motion).force
    delay = 1.5 * float(time[1] - time[0])
    late = np.stack([np.interp(time - delay, time, column) for column in forces.T], axis=1)
    log = arm_log((time, *motion), late, rng=np.random.default_rng(9))
    path = write_log(tmp_path / "late.csv", log.dataset())
    how = tl.IdentificationOptions(preparation=FILTER, errors="logs")
    folded = tl.fold_logs(
        loads(MACHINE), [*logs, path], tmp_path / "f", tl.FoldOptions(identification=how)
    )
    assert folded.faults == {str(path): 2}
    assert folded.status.value == "doubtful"
    single = tl.identify(loads(MACHINE), path, replace(how, errors="autocorrelated"))
    problem, _ = single.data_findings
    assert "lags the motion" in problem.what


def test_a_delay_that_only_all_logs_together_show_makes_the_result_doubtful(tmp_path):
    """A delay of 0.06 samples is within the noise of each log, but not of six."""
    extra("pyarrow")
    model = tl.Model(loads(MACHINE))
    paths = []
    for number in range(6):
        time, *motion = arm_motion(1200 + 200 * (number % 3), 0.7 * number)
        forces = model.actuators.inverse_dynamics(*motion).force
        late = np.stack([np.interp(time - 3e-4, time, column) for column in forces.T], axis=1)
        log = arm_log((time, *motion), late, rng=np.random.default_rng(number))
        paths.append(write_log(tmp_path / f"log_{number}.csv", log.dataset()))
    how = tl.IdentificationOptions(preparation=FILTER, hold_out=0.25)
    folded = tl.fold_logs(loads(MACHINE), paths, tmp_path / "f", tl.FoldOptions(identification=how))
    assert folded.faults == {}
    assert folded.status.value == "doubtful"
    (advice,) = folded.advice
    assert "delay of motor_1, motor_2" in advice
