"""What is wrong with the logs that ``tauloop identify`` is given, as far as they tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from tauloop.assembly.limits import require_within_limits
from tauloop.cli.identify_logs import MeasuredLog, Periodicity, naming_log, not_repeated, of_log
from tauloop.errors import IdentificationError, Problem
from tauloop.identification import Identification, InstrumentalVariables, RegressionData, Ties
from tauloop.identification.estimation.block_fits import LONGEST
from tauloop.identification.faults.channels import Measured, measured, wrong_channels
from tauloop.identification.faults.dead_channels import copied, dead
from tauloop.identification.faults.forces import unexplained, wrong_signs
from tauloop.identification.faults.missing_laws import missing_law_problems, missing_laws
from tauloop.identification.faults.residual_trends import residual_trends, trend_problems
from tauloop.identification.faults.signals import clipped, spikes
from tauloop.identification.faults.time_stamps import jitter
from tauloop.identification.faults.time_unit import wrong_time_unit
from tauloop.identification.friction.element_motion import elements, motion_of_elements
from tauloop.identification.friction.presliding import PRESLIDING
from tauloop.identification.preparation.motion_limits import motion_limits
from tauloop.identification.preparation.periodic_data import periodic_motion
from tauloop.identification.preparation.periods import PeriodAverage
from tauloop.logs import butterworth, channels, sample_period, samples
from tauloop.model import Model
from tauloop.result import Evidence

#: Last parts of the names of friction coefficients, which cannot be negative.
FRICTION = ("viscous", "coulomb")
#: A ratio as near to one is one.
SAME = 0.01
#: A filter whose cut-off is no smaller than this share of the decimated rate has no effect on what is left.
NYQUIST = 0.45


def faults_of_logs(
    model: Model,
    logs: Sequence[MeasuredLog],
    averages: Sequence[PeriodAverage],
    repeats: Periodicity | None,
    *,
    output: str,
    ties: Ties | None,
    scaled: bool = True,
    presliding: bool = False,
) -> tuple[Problem, ...]:
    """Faults of the channels of every log, with the log's name where there are several.

    Forces of unknown scale tell nothing of single channels (`scaled`). Where a channel is clipped, dead or a copy, or
    has spikes, or the motion does not repeat, no other fault of that log is looked for: the misfit is no sign of it
    then.
    """
    names = model.actuators.ports.position.columns
    limits = {actuator.name: actuator.force for actuator in model.mechanism.actuators if np.isfinite(actuator.force)}
    found: list[Problem] = []
    for number, log in enumerate(logs):
        moved = [name for name in names if name not in log.repairs.held]
        own = (*clipped(log.log, limits=limits), *spikes(log.log), *dead(log.log, moved), *copied(log.log, moved))
        own += not_repeated(log, averages[number]) if averages else ()
        if scaled and not own and not model.assembly.is_redundant:
            average = averages[number] if averages else None
            with naming_log(log, len(logs)):
                motion, step = _motion(model, log, average, repeats)
            own = wrong_time_unit(model, motion, output=output)
            own = own or wrong_channels(model, motion, output=output, ties=ties, step=step, presliding=presliding)
        own += jitter(log.log, names)
        found += (of_log(log, len(logs), problem) for problem in own)
    return tuple(found)


def moves_of_logs(
    model: Model, logs: Sequence[MeasuredLog], parts: Sequence[RegressionData]
) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Velocities of every log at the times of its regression data, and positions of the first `LONGEST` of them."""
    names = model.actuators.ports.position.columns
    found = []
    for log, part in zip(logs, parts, strict=True):
        kept = log.prepared.part(slice(None, None, log.preparation.decimation))
        found.append(
            (samples(kept, "velocity", names)[: len(part)], samples(kept, "position", names)[: min(len(part), LONGEST)])
        )
    return tuple(found)


def faults_of_data(
    model: Model,
    logs: Sequence[MeasuredLog],
    parts: Sequence[RegressionData],
    result: Identification,
    training: RegressionData,
    moves: Sequence[tuple[np.ndarray, np.ndarray]],
    *,
    output: str,
) -> tuple[Problem, ...]:
    """What the fit shows where channels have no other fault: drives that gain energy from friction, trends, laws.

    Friction of a shape that the model lacks can come out negative, so that laws go before the signs of their drives.
    Without moves, of periods that are averaged, only the signs are looked at.
    """
    mine, drives = friction(model, training)
    turned = wrong_signs(training, mine, drives)
    if not moves:
        return turned
    found: list[Problem] = []
    for log, part, (speeds, _) in zip(logs, parts, () if turned else moves, strict=False):
        told = residual_trends(part, friction(model, part)[0], passed=_passed(log, part), speeds=speeds)
        found += (of_log(log, len(logs), problem) for problem in trend_problems(told))
    if found:
        return tuple(found)
    motions = [
        motion_of_elements(
            model,
            places,
            speeds[:LONGEST],
            period=sample_period(log.log) * log.preparation.decimation,
            output=output,
        )
        for log, (speeds, places) in zip(logs, moves, strict=True)
    ]
    laws = missing_laws(parts, motions, _rubbing(model, parts[0]), result)
    acting = _acting(model)
    named = {f"force.{drive}" for law in laws for drive in acting[law.element]}
    return (*(problem for problem in turned if problem.where not in named), *missing_law_problems(laws))


def _rubbing(model: Model, data: RegressionData) -> tuple[str, ...]:
    """Elements with friction of their own, and the drives that act on none of them."""
    acting = _acting(model)
    owners = {name.rpartition(".")[0] for name in data.parameters if name.endswith(f".{FRICTION[1]}")}
    owners &= set(elements(model))
    told = {drive for owner in owners for drive in acting[owner]}
    drives = (actuator.name for actuator in model.mechanism.actuators)
    return (*sorted(owners), *(name for name in drives if name not in told))


def _passed(log: MeasuredLog, part: RegressionData) -> Callable[[np.ndarray], np.ndarray] | None:
    """What filter and differences of the positions make of a signal at the times of the regression data."""
    if part.time is None or len(part) < 2:
        return None
    step = float(part.time[-1] - part.time[0]) / (len(part) - 1)
    period = sample_period(log.log)
    cutoffs = [log.preparation.cutoff_of(name) for name in channels(log.log, "position")]
    cutoff = min((one for one in cutoffs if one is not None), default=np.inf)

    def passed(x: np.ndarray) -> np.ndarray:
        if cutoff * step < NYQUIST:
            x = butterworth(x, rate=1.0 / step, cutoff=cutoff, order=log.preparation.order)
        bend = np.gradient(np.gradient(x, step), step)
        return np.asarray(x + period**2 / 3.0 * bend)  # (sin(w T) / (w T))^2 of two central differences

    return passed


def limits_of_logs(model: Model, logs: Sequence[MeasuredLog], *, refuse: bool) -> tuple[Evidence, ...]:
    """Coordinates of every log beyond their stops, and angles that look like degrees.

    Raises:
        PoseError: where these are to be refused.
    """
    found = tuple(
        replace(item, name=item.name if len(logs) == 1 else f"{log.name}: {item.name}")
        for log in logs
        for item in motion_limits(model, log.log)
    )
    if refuse:
        require_within_limits(found)
    return found


@contextmanager
def naming(faults: Sequence[Problem]) -> Iterator[None]:
    """Put the faults before the problems of a fit that is refused: they may be its cause."""
    try:
        yield
    except IdentificationError as error:
        raise IdentificationError([*faults, *error.problems]) from error


def judged_faults(result: Identification, faults: Sequence[Problem]) -> tuple[Problem, ...]:
    """The faults; where there are none, outputs of which the model explains next to nothing."""
    return tuple(faults) or unexplained(result.training, result.held_out)


def fault_evidence(faults: Sequence[Problem]) -> Evidence:
    """The faults as a figure of the result, so that it is doubtful where there are any."""
    names = ", ".join(dict.fromkeys(problem.where for problem in faults))
    return Evidence(
        name="faults of the data",
        value=float(len(faults)),
        upper=0.0,
        advice=f"see the findings on {names}; mend the log or the machine file first",
    )


def remarks(result: Identification) -> tuple[str, ...]:
    """Figures that judge nothing by a limit, but without which the tables are misread."""
    figures = {item.name.split(",")[0].split(" (")[0]: item.value for item in result.evidence}
    found = []
    white = figures.get("Ljung-Box probability of white residuals")
    ratio = figures.get("standard deviations that count the residuals' correlation")
    if white is not None:
        found.append(f"Ljung-Box probability that the residuals are white: {white:.2g} (least of all outputs)")
    if ratio is not None and abs(ratio - 1.0) > SAME:
        found.append(f"standard deviations that count their correlation are {ratio:.3g} times those given (median)")
    if isinstance(result.estimator, InstrumentalVariables):
        found.append(
            "RMSE is that of the measured motion, whose noise is in the regressor: instruments do not make it small, "
            "so it is larger than with least squares and says nothing against the parameters"
        )
    return tuple(found)


def friction(model: Model, data: RegressionData) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Unknowns that are friction coefficients, and the drives that act on the joint of each."""
    acting = _acting(model)
    sliding = [name.removesuffix(f".{PRESLIDING}") for name in data.parameters if name.endswith(f".{PRESLIDING}")]
    turning = {drive for name in sliding for drive in acting.get(name, ())}
    matrix = np.eye(len(data.parameters)) if data.ties is None else data.ties.matrix
    found: dict[str, tuple[str, ...]] = {}
    for unknown, column in zip(data.unknowns, matrix.T, strict=True):
        parts = [data.parameters[i].rpartition(".") for i in np.flatnonzero(column)]
        if any(set(acting.get(owner, ())) & turning for owner, _, _ in parts):
            continue  # only both together lose energy
        if parts and column.min() >= 0.0 and all(kind in FRICTION for _, _, kind in parts):
            found[unknown] = tuple(dict.fromkeys(drive for owner, _, _ in parts for drive in acting.get(owner, ())))
    return tuple(found), {unknown: drives for unknown, drives in found.items() if drives}


def _acting(model: Model) -> dict[str, tuple[str, ...]]:
    """The drives that act on each element: joints, losses, and the drives themselves."""
    transmission = model.assembly.loops.transmission
    names = [actuator.name for actuator in model.mechanism.actuators]
    acting: dict[str, tuple[str, ...]] = {name: (name,) for name in names}
    for loss in model.mechanism.losses:
        places = [model.topology.velocity_names.index(name) for name, _ in loss.terms]
        acting[loss.name] = tuple(name for name, row in zip(names, transmission, strict=True) if row[places].any())
    for k, joint in enumerate(model.topology.velocity_names):
        acting[joint] = tuple(name for name, ratio in zip(names, transmission[:, k], strict=True) if ratio)
    return acting


def _motion(
    model: Model, log: MeasuredLog, average: PeriodAverage | None, repeats: Periodicity | None
) -> tuple[Measured, int]:
    """Motion and forces of a log at its own rate, and the samples that one step of a shift is."""
    if average is not None and repeats is not None:
        standstill = log.preparation.standstill
        motion = periodic_motion(model, average.log, highest=repeats.highest, standstill=standstill)
        return measured(model, average.log, motion=motion), 1
    factor = log.preparation.decimation
    return measured(model, log.prepared, decimation=factor), factor
