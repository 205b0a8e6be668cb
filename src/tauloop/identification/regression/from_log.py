"""Regression data from measured logs: motion, loop closure, regressor and decimation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tauloop.common.errors import (
    AssemblyError,
    IdentificationError,
    InputError,
    LogError,
    PoseError,
    Problem,
    solving,
)
from tauloop.equations.values import DynamicParameter
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.ties import Ties
from tauloop.logs import (
    Preparation,
    channels,
    common_cutoff,
    decimate,
    decimate_in_parts,
    prepared_signals,
    sample_period,
    samples,
    with_cutoffs,
)
from tauloop.logs.checks.saturation import LEFT_OUT
from tauloop.logs.log import Log, Signals, as_signals
from tauloop.logs.matching import MissingChannel, channel_problems
from tauloop.logs.signals import filter_reach, low_pass
from tauloop.mechanism.description.units import si_unit
from tauloop.mechanism.expression import leaves
from tauloop.mechanism.suggestions import suggestion
from tauloop.model import Model

#: SI units of lengths and angles.
GEOMETRIC_UNITS = ("m", "rad")
#: Groups of independent parameters that can be estimated from forces.
DYNAMIC_GROUPS = ("inertia", "friction", "drive", "spring")
#: Rows of the regressor: actuator forces, or forces on the driven coordinates.
OUTPUTS = ("actuators", "joints")
#: Quantities of a prepared motion.
MOTION_QUANTITIES = ("position", "velocity", "acceleration")
#: Number of samples whose loops are closed at a time.
FOLLOWED_AT_ONCE = 100_000
#: Number of columns of the regressor that are low-passed at a time.
FILTERED_AT_ONCE = 32


def dynamic_parameters(model: Model, known: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the independent parameters of the machine file on which forces depend linearly.

    They are parameters of inertia, friction, drives and springs. Known parameters are excluded, and
    so are rest positions of springs and Stribeck speeds (`held_leaves`) and lengths
    (`held_lengths`), in which forces are not linear.
    """
    excluded = {*known, *held_leaves(model, known), *held_lengths(model, known)}
    return tuple(
        p.name
        for p in model.mechanism.parameters
        if p.group in DYNAMIC_GROUPS and p.name not in excluded
    )


def held_leaves(model: Model, known: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the rest positions of springs with unknown stiffness, and the Stribeck speeds.

    These parameters keep their values, because forces are not jointly linear in them and the other
    unknowns.
    """
    mechanism = model.mechanism
    freedoms = model.topology.freedoms
    springs = [freedom.spring for freedom in freedoms if freedom.spring is not None]
    expressions = [spring.rest for spring in springs if not leaves(spring.stiffness) <= set(known)]
    frictions = [freedom.friction for freedom in freedoms]
    frictions += [actuator.friction for actuator in mechanism.actuators]
    frictions += [loss.friction for loss in mechanism.losses]
    expressions += [
        friction.stribeck
        for friction in frictions
        if friction is not None and friction.stribeck is not None
    ]
    names = (name for expression in expressions for name in sorted(leaves(expression)))
    return tuple(dict.fromkeys(names))


def held_lengths(model: Model, known: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the lengths and angles that keep their values, because forces are not linear in them.

    Forces depend on powers of these parameters, or on their products with other unknown parameters.
    An example is a leg's length that also determines its center of mass. If the mass is known, the
    distance of the center of mass can be an unknown.
    """
    table = model.mechanism.parameters
    unknown = {p.name for p in table if p.group in DYNAMIC_GROUPS} - set(known)
    lengths = {name for name in unknown if si_unit(table[name].unit) in GEOMETRIC_UNITS}
    held: set[str] = set()
    for entry in model.parameters:
        used = leaves(entry.expression) & unknown
        if len(used) > 1 or not all(_is_linear(model, entry, name) for name in used & lengths):
            held |= used & lengths
    return tuple(p.name for p in table if p.name in held)


def _is_linear(model: Model, entry: DynamicParameter, name: str) -> bool:
    """Return whether a dynamic parameter is linear in an independent parameter.

    Linearity is tested at three values of the independent parameter.
    """

    def value_at(value: float) -> float:
        return model.mechanism.at_values({name: value}).value(entry.expression)

    first = value_at(1.0)
    second = value_at(2.0)
    third = value_at(3.0)
    return abs(third - 2.0 * second + first) <= 1e-9 * (abs(first) + abs(second) + abs(third))


def parameter_ties(model: Model, names: Iterable[str] | None = None) -> Ties:
    """Return the ties of the regressor's columns to independent parameters of the machine file.

    All other independent parameters have their values in the file.

    Args:
        model: the machine.
        names: independent parameters to identify; by default those of `dynamic_parameters`.

    Raises:
        InputError: forces are not jointly linear in these parameters.
    """
    chosen = dynamic_parameters(model) if names is None else tuple(names)
    matrix, offset = model.parameter_map(chosen)
    units = tuple(si_unit(model.mechanism.parameters[name].unit) for name in chosen)
    return Ties(matrix=matrix, offset=offset, parameters=chosen, units=units)


@solving(IdentificationError)
def regression_data(
    model: Model,
    log: Log,
    preparation: Preparation,
    *,
    output: str = "actuators",
    ties: Ties | None = None,
    prepared: Signals | None = None,
    common_filter: bool = True,
) -> RegressionData:
    """Return the regressor and forces of a log whose channels are named after the actuators.

    Positions are filtered and differentiated. Loops are closed by forward kinematics tracked along
    the log. Regressor and forces are filtered and decimated in the same way; this includes the
    columns of dry friction. If the log marks samples of a force (``left_out.NAME``, such as from
    `without_saturated`), force and regressor are first set to zero at these samples, so that they
    do not contribute to any decimated row.

    Args:
        model: the machine.
        log: positions of all actuators, and forces of some or all of them.
        preparation: filtering, trimming, decimation.
        output: "actuators" for one equation per actuator force, or "joints" for one per driven
            coordinate (forces A^T u). "joints" and redundant actuators need the forces of all
            actuators. Redundant actuators have one equation per leading actuator, or per coordinate
            that it drives, for the resultant of all forces (`Model.measurable_output`).
        ties: relations between the parameters, such as `parameter_ties(model)`.
        prepared: result of `prepared_signals` for the log, if it has been computed already. The
            preparation must then have the cutoffs of `with_cutoffs`, or none if nothing was
            filtered.
        common_filter: whether regressor and forces pass the filter of `common_cutoff`. If False,
            they pass only the filter of the decimation, so that data with different cutoffs can be
            compared (`RegressionData.low_passed` filters them later).

    Raises:
        InputError: the output is unknown.
        LogError: channels are missing or misspelled, or their unit differs from the machine's.
        PoseError: the log leaves the workspace of the machine.
    """
    require_channels(model, log, output)
    if prepared is None:
        preparation = with_cutoffs(log, preparation)
        prepared = prepared_signals(log, preparation)
    forces, measured = measured_forces(model, prepared, output)
    present = present_rows(model, prepared, output)
    factor = preparation.decimation
    cutoff = common_cutoff(prepared, preparation) if common_filter else None
    regressor = _regressor(model, prepared, output, factor, cutoff, present)
    outputs, units = model.output_ports(model.measurable_output(output))
    time = prepared.time
    if present is not None:
        forces = forces * present
    forces = decimate(forces, factor, cutoff)
    if factor > 1:
        # Copy the times, because a view would hold the times of the full log in memory.
        time = time[::factor][: len(forces)].copy()
    if present is not None:
        present = present[::factor][: len(forces)] & measured
        forces, regressor = forces * present, regressor * present[:, :, None]
    return RegressionData(
        regressor=regressor,
        forces=forces,
        parameters=tuple(p.name for p in model.parameters),
        parameter_units=tuple(p.unit for p in model.parameters),
        outputs=outputs,
        output_units=units,
        time=time,
        measured=measured if present is None else measured & present.any(axis=0),
        ties=ties,
        present=present,
        period=factor * sample_period(prepared),
        reach=filter_reach(factor, cutoff),
    )


def present_rows(model: Model, log: Log, output: str) -> np.ndarray | None:
    """Return a mask (N, n_out): False where a force of the row is marked as left out.

    The result is None if no force is marked.
    """
    marked = channels(log, LEFT_OUT)
    is_marked = [actuator.name in marked for actuator in model.mechanism.actuators]
    if not any(is_marked):
        return None
    names = [actuator.name for actuator in model.mechanism.actuators if actuator.name in marked]
    marks = np.zeros((len(as_signals(log).time), len(is_marked)), dtype=bool)
    marks[:, is_marked] = samples(log, LEFT_OUT, names) != 0.0
    if output == "actuators" and not model.assembly.is_redundant:
        return ~marks
    contains = np.any(force_mixing(model, log, output) != 0.0, axis=0)
    return ~np.asarray(marks.astype(float) @ contains > 0.0)


def motion_regressor(
    model: Model,
    log: Log,
    preparation: Preparation,
    *,
    output: str = "actuators",
    prepared: Signals | None = None,
) -> np.ndarray:
    """Return the regressor (N, n_out, n_pi) of a motion without forces.

    The motion is prepared as in `regression_data`. The regressor of the commanded motion, at the
    samples of the measured motion, provides the instruments for ideal tracking (see
    `InstrumentalVariables`).

    Raises:
        InputError: the output is unknown.
        LogError: positions are missing or misspelled, or their unit differs from the machine's.
        PoseError: the motion leaves the workspace of the machine.
    """
    require_positions(model, log, output)
    if prepared is None:
        preparation = with_cutoffs(log, preparation)
        prepared = prepared_signals(log, preparation)
    cutoff = common_cutoff(prepared, preparation)
    return _regressor(model, prepared, output, preparation.decimation, cutoff)


def measured_forces(model: Model, log: Log, output: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the forces of a log in the order of the regressor's rows.

    Returns:
        Forces (N, n_out), and a mask (n_out,) of the measured rows.
    """
    names = [actuator.name for actuator in model.mechanism.actuators]
    present = [name for name in names if name in channels(log, "force")]
    measured = np.isin(names, present)
    values = samples(log, "force", present)
    forces = np.zeros((len(values), len(names)))
    forces[:, measured] = values
    if output == "actuators" and not model.assembly.is_redundant:
        return forces, measured
    mixing = force_mixing(model, log, output)
    return np.einsum("nu,nuk->nk", forces, mixing), np.ones(mixing.shape[2], dtype=bool)


def force_mixing(model: Model, log: Log, output: str) -> np.ndarray:
    """Return the matrices B (N or 1, n_u, n_out) that map actuator forces u to the outputs B^T u.

    For redundant actuators B^T u are the resultants R^T u on the leading motions, at the log's
    positions.
    """
    if not model.assembly.is_redundant:
        if output == "joints":
            return driven_transmission(model)[None]
        return np.eye(len(model.mechanism.actuators))[None]
    position = samples(log, "position", model.actuators.ports.position.columns)
    start = model.actuators.track(position).q if model.assembly.rows else None
    R = model.actuators.actuator_jacobian(position, start=start)
    if output == "joints":
        R = R @ leading_transmission(model)
    return np.asarray(R)


def leading_transmission(model: Model) -> np.ndarray:
    """Return the matrix A (n, n_driven) of the leading actuators.

    Forces u of these actuators act as A^T u on the coordinates that they drive.
    """
    return model.assembly.leading_drive.matrix


def driven_transmission(model: Model) -> np.ndarray:
    """Return the matrix A (n_u, n_driven) of all actuators.

    Actuator forces u act as A^T u on the driven coordinates.
    """
    return np.asarray(model.assembly.loops.transmission[:, list(model.assembly.driven)])


def regressor_rows(
    model: Model,
    motion: tuple[np.ndarray, np.ndarray, np.ndarray],
    output: str,
    start: np.ndarray | None,
    samples: int = 0,
) -> np.ndarray:
    """Return the regressor (N, n_out, n_pi) of a motion of the actuators.

    With coupled joints an actuator's velocity is computed as a sum of joint velocities. For an
    actuator at rest this sum is a rounding error, whose sign must not affect Coulomb friction. The
    columns of dry friction are therefore zero where the measured velocity is exactly zero.

    Args:
        model: the machine.
        motion: positions, velocities and accelerations of the columns of `model.actuators`, each
            (N, n).
        output: one of `OUTPUTS`.
        start: result of `regressor_start`.
        samples: total number of samples, if the motion is one part of a longer motion.
    """
    measured = model.measurable_output(output)
    rows = model.actuators.regressor(*motion, output=measured, start=start, samples=samples)
    _, velocity, _ = motion
    for actuator, column in _dry_friction_columns(model):
        rows[velocity[:, actuator] == 0.0, :, column] = 0.0
    return rows


def regressor_start(model: Model, position: np.ndarray, output: str) -> np.ndarray | None:
    """Return coordinates (N, n_q) along positions (N, n), as the start values of `regressor_rows`.

    The result is None if start values do not affect the regressor. The regressor then reports
    positions out of reach.

    Raises:
        PoseError, AssemblyError: see `track`.
    """
    if not _needs_start(model, output):
        return None
    return model.actuators.track(position).q


def _needs_start(model: Model, output: str) -> bool:
    """Return whether start values affect the regressor of an output."""
    measured = model.measurable_output(output)
    return bool(model.assembly.rows) and model.actuators.regressor_reads_start(measured)


def _require_known_output(output: str) -> None:
    """Raise an error if the output is unknown."""
    if output not in OUTPUTS:
        raise InputError.of("output", f"{output!r} is unknown", f"use {' or '.join(OUTPUTS)}")


def _regressor(
    model: Model,
    prepared: Signals,
    output: str,
    factor: int,
    cutoff: float | None,
    present: np.ndarray | None = None,
) -> np.ndarray:
    """Return the regressor (N', n_out, n_pi) of a prepared log.

    Raises:
        PoseError: the log leaves the workspace; messages count the samples of the prepared log.
    """
    try:
        return _decimated_regressor(model, prepared, output, factor, cutoff, present)
    except PoseError as error:
        note = f" (counted from 0, which is {prepared.time[0]:g} s in the log)"
        raise PoseError(
            replace(problem, what=problem.what + note) for problem in error.problems
        ) from error


def _decimated_regressor(
    model: Model,
    prepared: Signals,
    output: str,
    factor: int,
    cutoff: float | None,
    present: np.ndarray | None,
) -> np.ndarray:
    """Return the regressor (N', n_out, n_pi) at the decimated rate.

    At the full rate it is computed in parts to limit the memory.
    """
    names = model.actuators.ports.position.columns
    all_samples = slice(0, len(prepared.time))
    tracker = _LoopTracker(model, prepared) if _needs_start(model, output) else None

    def regressor(part: slice) -> np.ndarray:
        log = prepared.part(part)
        position, velocity, acceleration = (
            samples(log, quantity, names) for quantity in MOTION_QUANTITIES
        )
        start = None if tracker is None else tracker(part)
        motion = (position, velocity, acceleration)
        rows = regressor_rows(model, motion, output, start, all_samples.stop)
        return rows if present is None else rows * present[part][:, :, None]

    if factor == 1:
        return _low_passed(regressor(all_samples), cutoff)
    try:
        rows = decimate_in_parts(regressor, len(prepared.time), factor)
    except (PoseError, AssemblyError):
        if tracker is not None:
            tracker = _LoopTracker(model, prepared)
        # This raises the error again, with samples counted from the start of the log.
        return regressor(all_samples)
    return _low_passed(rows, None if cutoff is None else cutoff * factor)


def _low_passed(regressor: np.ndarray, cutoff: float | None) -> np.ndarray:
    """Return a regressor (N, n_out, n_pi), low-passed in place to save memory."""
    if cutoff is None:
        return regressor
    regressor = np.ascontiguousarray(regressor)
    columns = regressor.reshape(len(regressor), regressor.shape[1] * regressor.shape[2])
    used = np.flatnonzero(columns.any(axis=0))
    for first in range(0, len(used), FILTERED_AT_ONCE):
        group = used[first : first + FILTERED_AT_ONCE]
        columns[:, group] = low_pass(np.take(columns, group, axis=1), cutoff)
    return regressor


class _LoopTracker:
    """Coordinates along the positions of a log, tracked in parts from the start to the end.

    For a long log the coordinates and diagnostics of all samples would need more memory than the
    log.
    """

    def __init__(self, model: Model, log: Signals) -> None:
        self._track = model.actuators.track
        self._log = log
        self._names = model.actuators.ports.position.columns
        #: Coordinates of the samples from `_first` on that have been tracked.
        self._q = np.empty((0, model.topology.n_q))
        self._first = 0

    def __call__(self, part: slice) -> np.ndarray:
        """Return the coordinates (M, n_q) of a slice that starts at or after the previous slice.

        Raises:
            PoseError, AssemblyError: see `track`.
        """
        self._q = self._q[part.start - self._first :]
        self._first = part.start
        while (end := self._first + len(self._q)) < part.stop:
            # The last sample is tracked again, so that the step to the next sample is checked too.
            ahead = slice(max(end - 1, 0), max(part.stop, end + FOLLOWED_AT_ONCE))
            position = samples(self._log.part(ahead), "position", self._names)
            q = self._track(position, self._q[-1] if end else None).q
            self._q = np.concatenate([self._q, q[1:] if end else q])
        return self._q[: part.stop - part.start]


def _dry_friction_columns(model: Model) -> list[tuple[int, int]]:
    """Return pairs of indices: an actuator's position, and a column of its dry friction."""
    columns = {parameter.name: k for k, parameter in enumerate(model.parameters)}
    actuators = {actuator.name for actuator in model.mechanism.actuators}
    pairs = []
    for k, name in enumerate(model.actuators.ports.position.columns):
        for role in ("coulomb", "coulomb_asymmetry", "stribeck"):
            column = columns.get(f"{name}.{role}")
            if name in actuators and column is not None:
                pairs.append((k, column))
    return pairs


def require_positions(model: Model, log: Log, output: str) -> None:
    """Raise an error if a motion lacks the position of an actuator, or of a leading actuator.

    Raises:
        InputError: the output is unknown.
        LogError: positions are missing or misspelled, or their unit differs from the machine's.
    """
    _require_known_output(output)
    port = model.actuators.ports.position
    problems = channel_problems(log, {"position": dict(zip(port.columns, port.units, strict=True))})
    if problems:
        raise LogError(map(_suggest_hold, problems))


def require_channels(model: Model, log: Log, output: str) -> None:
    """Raise an error if a log lacks positions (see `require_positions`) or forces.

    The output "joints" and redundant actuators need the forces of all actuators. Otherwise the
    force of one actuator is sufficient.

    Raises:
        InputError: the output is unknown.
        LogError: channels are missing or misspelled, or their unit differs from the machine's.
    """
    _require_known_output(output)
    port = model.actuators.ports.position
    units = dict(zip(*model.output_ports("actuators"), strict=True))
    measured = channels(log, "force")
    present = [name for name in units if name in measured]
    needs_all = output == "joints" or model.assembly.is_redundant
    position_units = dict(zip(port.columns, port.units, strict=True))
    force_units = {name: unit for name, unit in units.items() if name in present or needs_all}
    problems = channel_problems(log, {"position": position_units, "force": force_units})
    if not present and not needs_all:
        forces = f"its forces are {', '.join(measured)}" if measured else "it has no forces"
        problems.append(
            Problem(
                "force",
                f"the log has no actuator force; {forces}",
                f"assign columns to some or all of {', '.join(units)}",
            )
        )
    elif not needs_all:
        absent = [name for name in units if name not in present]
        for name in measured:
            remedy = "" if name in units else suggestion(name, absent)
            if remedy:
                problems.append(
                    Problem(f"force.{name}", "is not an actuator of the machine", remedy)
                )
    if problems:
        raise LogError(map(_suggest_hold, problems))


def _suggest_hold(problem: Problem) -> Problem:
    """Return a problem; for a missing position, add advice for an axis that did not move."""
    quantity, _, name = problem.where.partition(".")
    if quantity != "position" or not isinstance(problem, MissingChannel):
        return problem
    remedy = f"{problem.remedy}; if the axis did not move, give --hold {name}=VALUE"
    return replace(problem, remedy=remedy)
