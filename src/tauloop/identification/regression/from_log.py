"""From a measured log to regression data: prepare the motion, close the loops, make the regressor, decimate both."""

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
from tauloop.logs.matching import channel_problems
from tauloop.logs.signals import filter_reach, low_pass
from tauloop.mechanism.description.units import si_unit
from tauloop.mechanism.expression import leaves
from tauloop.mechanism.suggestions import suggestion
from tauloop.model import Model

#: SI units of lengths and angles.
GEOMETRIC_UNITS = ("m", "rad")
#: Groups of leaf parameters that identification may estimate from forces.
DYNAMIC_GROUPS = ("inertia", "friction", "drive", "spring")
#: What the rows of the regressor may be: actuator forces, or forces on the driven coordinates.
OUTPUTS = ("actuators", "joints")
#: Quantities of a prepared motion.
MOTION = ("position", "velocity", "acceleration")
#: Samples that are followed through their loops at a time.
FOLLOWED_AT_ONCE = 100_000


def dynamic_leaves(model: Model, known: Iterable[str] = ()) -> tuple[str, ...]:
    """Leaf parameters of the machine file that forces depend on linearly: inertia, friction, drives, springs.

    Those that are known are not among them, nor are rests of springs, Stribeck speeds (see
    `held_leaves`) and lengths (see `held_lengths`).
    """
    held = {*known, *held_leaves(model, known), *held_lengths(model, known)}
    return tuple(
        p.name
        for p in model.mechanism.parameters
        if p.group in DYNAMIC_GROUPS and p.name not in held
    )


def held_leaves(model: Model, known: Iterable[str] = ()) -> tuple[str, ...]:
    """Leaf parameters that keep their values, since forces are not linear in them beside those that are sought.

    They are rests of springs whose stiffness is not known, and Stribeck speeds.
    """
    mechanism = model.mechanism
    freedoms = model.topology.freedoms
    springs = [freedom.spring for freedom in freedoms if freedom.spring is not None]
    expressions = [spring.rest for spring in springs if not leaves(spring.stiffness) <= set(known)]
    losses = [freedom.friction for freedom in freedoms]
    losses += [actuator.friction for actuator in mechanism.actuators] + [
        loss.friction for loss in mechanism.losses
    ]
    expressions += [
        friction.stribeck
        for friction in losses
        if friction is not None and friction.stribeck is not None
    ]
    return tuple(
        dict.fromkeys(name for expression in expressions for name in sorted(leaves(expression)))
    )


def held_lengths(model: Model, known: Iterable[str] = ()) -> tuple[str, ...]:
    """Lengths and angles that keep their values, since forces are not linear in them.

    Forces depend on their powers, or on products with other parameters that are sought: a length of
    a leg that also places its mass centre is one. With a known mass, a distance of its centre is
    sought.
    """
    table = model.mechanism.parameters
    sought = {p.name for p in table if p.group in DYNAMIC_GROUPS} - set(known)
    lengths = {name for name in sought if si_unit(table[name].unit) in GEOMETRIC_UNITS}
    held: set[str] = set()
    for entry in model.parameters:
        used = leaves(entry.expression) & sought
        if len(used) > 1 or not all(_is_linear(model, entry, name) for name in used & lengths):
            held |= used & lengths
    return tuple(p.name for p in table if p.name in held)


def _is_linear(model: Model, entry: DynamicParameter, name: str) -> bool:
    """Whether a dynamic parameter is linear in one leaf parameter, by its values at three equal steps."""
    first, second, third = (
        model.mechanism.at_values({name: value}).value(entry.expression)
        for value in (1.0, 2.0, 3.0)
    )
    return abs(third - 2.0 * second + first) <= 1e-9 * (abs(first) + abs(second) + abs(third))


def leaf_ties(model: Model, names: Iterable[str] | None = None) -> Ties:
    """Ties of the regressor's columns to leaf parameters of the machine file; all other leaves keep their values.

    Args:
        model: the machine.
        names: leaf parameters to identify; all of `dynamic_leaves` without it.

    Raises:
        InputError: forces are not linear in these parameters together.
    """
    chosen = dynamic_leaves(model) if names is None else tuple(names)
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
    """Regressor and forces of a log whose channels are named after the machine's actuators.

    Positions are filtered and differentiated; loops are closed by forward kinematics tracked along
    the log; the regressor, its columns of dry friction included, and the forces are filtered and
    decimated alike. Samples of a force that the log marks (``left_out.NAME``, such as of
    `without_saturated`) are zero on both sides before that, so that they count for nothing in any
    decimated row.

    Args:
        model: the machine.
        log: positions of all actuators, and forces of some or all of them.
        preparation: filtering, trimming, decimation.
        output: "actuators": one equation per actuator force; "joints": one per driven coordinate
            (forces A^T u), for which all forces must be measured, as they must of redundant
            actuators: these have one equation per leading actuator, or per coordinate that it
            drives, for the resultant of all forces (`Model.measurable_output`).
        ties: relations between the parameters, such as `leaf_ties(model)`.
        prepared: the log as `prepared_signals` prepares it, where that is done already; then the
            preparation has the cut-offs of `with_cutoffs`, or none where nothing was filtered.
        common_filter: whether regressor and forces pass `common_cutoff`; without it decimation
            alone filters them, and data of several cut-offs compare (`RegressionData.low_passed`
            filters them later).

    Raises:
        InputError: no such output.
        LogError: channels are missing, misspelt or in another unit than the machine's.
        PoseError: the log leaves the workspace of the described machine.
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
        time = time[::factor][: len(forces)].copy()  # a view would keep the whole log's
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
    """Rows (N, n_out) in which no force is marked as left out that they hold; None where none is marked."""
    marked = channels(log, LEFT_OUT)
    out = [actuator.name in marked for actuator in model.mechanism.actuators]
    if not any(out):
        return None
    names = [actuator.name for actuator in model.mechanism.actuators if actuator.name in marked]
    marks = np.zeros((len(as_signals(log).time), len(out)), dtype=bool)
    marks[:, out] = samples(log, LEFT_OUT, names) != 0.0
    if output == "actuators" and not model.assembly.is_redundant:
        return ~marks
    holds = np.any(force_mixing(model, log, output) != 0.0, axis=0)
    return ~np.asarray(marks.astype(float) @ holds > 0.0)


def motion_regressor(
    model: Model,
    log: Log,
    preparation: Preparation,
    *,
    output: str = "actuators",
    prepared: Signals | None = None,
) -> np.ndarray:
    """Regressor (N, n_out, n_pi) of a motion that has no forces, prepared as `regression_data` prepares its log.

    Of the commanded motion, at the samples of the measured one, it is the instruments of ideal
    tracking (see `InstrumentalVariables`).

    Raises:
        InputError: no such output.
        LogError: positions are missing, misspelt or in another unit than the machine's.
        PoseError: the motion leaves the workspace of the described machine.
    """
    require_positions(model, log, output)
    if prepared is None:
        preparation = with_cutoffs(log, preparation)
        prepared = prepared_signals(log, preparation)
    return _regressor(
        model, prepared, output, preparation.decimation, common_cutoff(prepared, preparation)
    )


def measured_forces(model: Model, log: Log, output: str) -> tuple[np.ndarray, np.ndarray]:
    """Forces (N, n_out) of a log in the order of the regressor's rows, and which rows are measured (n_out,)."""
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
    """B (N or 1, n_u, n_out): the regressor's rows are for B^T u, with the forces u of all actuators.

    Of redundant actuators B^T u are the resultants R^T u on the leading motions, at the log's
    positions.
    """
    if not model.assembly.is_redundant:
        return (
            driven_transmission(model)
            if output == "joints"
            else np.eye(len(model.mechanism.actuators))
        )[None]
    position = samples(log, "position", model.actuators.ports.position.columns)
    start = model.actuators.track(position).q if model.assembly.rows else None
    R = model.actuators.actuator_jacobian(position, start=start)
    if output == "joints":
        R = R @ leading_transmission(model)
    return np.asarray(R)


def leading_transmission(model: Model) -> np.ndarray:
    """A (n, n_driven): forces on the coordinates that the leading actuators drive are A^T u of these actuators."""
    return model.assembly.leading_drive.matrix


def driven_transmission(model: Model) -> np.ndarray:
    """A (n_u, n_driven): forces on the driven coordinates are A^T u, with the forces u of the actuators."""
    return np.asarray(model.assembly.loops.transmission[:, list(model.assembly.driven)])


def regressor_rows(
    model: Model,
    motion: tuple[np.ndarray, np.ndarray, np.ndarray],
    output: str,
    start: np.ndarray | None,
) -> np.ndarray:
    """Regressor (N, n_out, n_pi) of a motion of the actuators.

    Where joints are coupled an actuator's velocity is a sum of joint velocities. Of an actuator at
    rest it is rounding, whose sign must not enter Coulomb friction: its measured velocity, exactly
    zero, says that it rests.

    Args:
        model: the machine.
        motion: positions, velocities and accelerations of the columns of `model.actuators`, each
            (N, n).
        output: of `OUTPUTS`.
        start: coordinates at every sample (N, n_q) where loops are closed, else None.
    """
    rows = model.actuators.regressor(*motion, output=model.measurable_output(output), start=start)
    for actuator, column in _dry_friction(model):
        rows[motion[1][:, actuator] == 0.0, :, column] = 0.0
    return rows


def _require_known(output: str) -> None:
    if output not in OUTPUTS:
        raise InputError.of("output", f"{output!r} is unknown", " or ".join(OUTPUTS))


def _regressor(
    model: Model,
    prepared: Signals,
    output: str,
    factor: int,
    cutoff: float | None,
    present: np.ndarray | None = None,
) -> np.ndarray:
    """Regressor (N', n_out, n_pi) of a prepared log; messages count samples in it."""
    try:
        return _decimated_regressor(model, prepared, output, factor, cutoff, present)
    except PoseError as error:
        counted = f" (counted from 0, which is {prepared.time[0]:g} s in the log)"
        raise PoseError(
            replace(problem, what=problem.what + counted) for problem in error.problems
        ) from error


def _decimated_regressor(
    model: Model,
    prepared: Signals,
    output: str,
    factor: int,
    cutoff: float | None,
    present: np.ndarray | None,
) -> np.ndarray:
    """Regressor (N', n_out, n_pi) at the decimated rate; at the full rate it is never in memory as a whole."""
    names = model.actuators.ports.position.columns
    everything = slice(0, len(prepared.time))
    along = _Along(model, prepared) if model.assembly.rows else None

    def regressor(part: slice) -> np.ndarray:
        log = prepared.part(part)
        position, velocity, acceleration = (samples(log, kind, names) for kind in MOTION)
        rows = regressor_rows(
            model,
            (position, velocity, acceleration),
            output,
            None if along is None else along(part),
        )
        return rows if present is None else rows * present[part][:, :, None]

    if factor == 1:
        return _low_passed(regressor(everything), cutoff)
    try:
        rows = decimate_in_parts(regressor, len(prepared.time), factor)
    except (PoseError, AssemblyError):
        if along is not None:
            along = _Along(model, prepared)
        # raises again, with samples counted from the beginning of the log
        return regressor(everything)
    return _low_passed(rows, None if cutoff is None else cutoff * factor)


def _low_passed(regressor: np.ndarray, cutoff: float | None) -> np.ndarray:
    """Return a regressor (N, n_out, n_pi) low-passed in place, one output at a time: a second one takes much memory."""
    if cutoff is not None:
        for k in range(regressor.shape[1]):
            regressor[:, k] = low_pass(regressor[:, k], cutoff)
    return regressor


class _Along:
    """Coordinates along the positions of a log, followed a part at a time as later and later samples are asked for.

    Of a long log the coordinates and the diagnostics of all samples together take more memory than the
    log itself.
    """

    def __init__(self, model: Model, log: Signals) -> None:
        self._track, self._log = model.actuators.track, log
        self._names = model.actuators.ports.position.columns
        self._first, self._q = 0, np.empty((0, model.topology.n_q))

    def __call__(self, part: slice) -> np.ndarray:
        """Coordinates (size, n_q) of a slice that begins no earlier than the one before it.

        Raises:
            PoseError, AssemblyError: as `track`.
        """
        self._q, self._first = self._q[part.start - self._first :], part.start
        while (done := self._first + len(self._q)) < part.stop:
            # the last sample is followed again: the seam is a step like others
            ahead = slice(max(done - 1, 0), max(part.stop, done + FOLLOWED_AT_ONCE))
            position = samples(self._log.part(ahead), "position", self._names)
            q = self._track(position, self._q[-1] if done else None).q
            self._q = np.concatenate([self._q, q[1:] if done else q])
        return self._q[: part.stop - part.start]


def _dry_friction(model: Model) -> tuple[tuple[int, int], ...]:
    """Places of given actuators with dry friction of their own among the positions, and its columns."""
    columns = {parameter.name: k for k, parameter in enumerate(model.parameters)}
    actuators = {actuator.name for actuator in model.mechanism.actuators}
    places = enumerate(model.actuators.ports.position.columns)
    dry = ("coulomb", "coulomb_asymmetry", "stribeck")
    named = ((i, f"{name}.{role}") for i, name in places if name in actuators for role in dry)
    return tuple((i, columns[name]) for i, name in named if name in columns)


def require_positions(model: Model, log: Log, output: str) -> None:
    """Refuse a motion without the positions that it is given by: of all actuators, or the leading ones of many.

    Raises:
        InputError: no such output.
        LogError: positions are missing, misspelt or in another unit than the machine's.
    """
    _require_known(output)
    port = model.actuators.ports.position
    problems = channel_problems(log, {"position": dict(zip(port.columns, port.units, strict=True))})
    if problems:
        raise LogError(map(_or_held, problems))


def require_channels(model: Model, log: Log, output: str) -> None:
    """Refuse a log without positions, as `require_positions`, or forces of some actuators, or of all that are needed.

    All are needed for joints and for the resultants of redundant actuators.

    Raises:
        InputError: no such output.
        LogError: channels are missing, misspelt or in another unit than the machine's.
    """
    _require_known(output)
    port = model.actuators.ports.position
    units = dict(zip(*model.output_ports("actuators"), strict=True))
    measured = channels(log, "force")
    present = [name for name in units if name in measured]
    needs_all = output == "joints" or model.assembly.is_redundant
    problems = channel_problems(
        log,
        {
            "position": dict(zip(port.columns, port.units, strict=True)),
            "force": {name: unit for name, unit in units.items() if name in present or needs_all},
        },
    )
    if not present and not needs_all:
        problems.append(
            Problem(
                "force",
                f"the log has no force of an actuator; it has {', '.join(measured) or 'none'}",
                f"map columns to some or all of {', '.join(units)}",
            )
        )
    elif not needs_all:
        absent = [name for name in units if name not in present]
        problems += [
            Problem(f"force.{name}", "is no actuator of the machine", meant)
            for name in measured
            if name not in units and (meant := suggestion(name, absent))
        ]
    if problems:
        raise LogError(map(_or_held, problems))


def _or_held(problem: Problem) -> Problem:
    """A position that is missing may be that of an axis that stood still."""
    quantity, _, name = problem.where.partition(".")
    if quantity != "position" or not problem.what.startswith("not in the log"):
        return problem
    return replace(problem, remedy=f"{problem.remedy}; where it stood still: --hold {name}=VALUE")
