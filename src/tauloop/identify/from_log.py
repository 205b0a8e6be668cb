"""From a measured log to regression data: prepare the motion, close the loops, make the regressor, decimate both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import xarray as xr

from tauloop.errors import InputError, LogError, PoseError, Problem
from tauloop.functions import Model
from tauloop.identify.data import RegressionData, Ties
from tauloop.logs import Preparation, channels, decimate, decimate_in_parts, prepare, samples
from tauloop.logs.channels import TIME
from tauloop.logs.matching import channel_problems
from tauloop.mechanism.suggestions import suggestion

#: Groups of leaf parameters that identification may estimate from forces.
DYNAMIC_GROUPS = ("inertia", "friction", "drive", "spring")
#: What the rows of the regressor may be: actuator forces, or forces on the driven coordinates.
OUTPUTS = ("actuators", "joints")


def dynamic_leaves(model: Model) -> tuple[str, ...]:
    """Leaf parameters of the machine file that forces depend on linearly: inertia, friction, drives, springs."""
    return tuple(p.name for p in model.mechanism.parameters if p.group in DYNAMIC_GROUPS)


def leaf_ties(model: Model, names: Iterable[str] | None = None) -> Ties:
    """Ties of the regressor's columns to leaf parameters of the machine file; all other leaves keep their values.

    Args:
        model: the machine.
        names: leaf parameters to identify; all of `dynamic_leaves` without it.

    Raises:
        InputError: forces are not linear in these parameters together.
    """
    chosen = dynamic_leaves(model) if names is None else tuple(names)
    matrix, offset = model.ties(chosen)
    units = tuple(model.mechanism.parameters[name].unit for name in chosen)
    return Ties(matrix=matrix, offset=offset, parameters=chosen, units=units)


def regression_data(
    model: Model,
    log: xr.Dataset,
    preparation: Preparation,
    *,
    output: str = "actuators",
    ties: Ties | None = None,
) -> RegressionData:
    """Regressor and forces of a log whose channels are named after the machine's actuators.

    Positions are filtered and differentiated; loops are closed by forward kinematics tracked along the log; the
    regressor and the forces are decimated alike.

    Args:
        model: the machine.
        log: positions of all actuators, and forces of some or all of them.
        preparation: filtering, trimming, decimation.
        output: "actuators": one equation per actuator force; "joints": one per driven coordinate (forces A^T u), for
            which all forces must be measured.
        ties: relations between the parameters, such as `leaf_ties(model)`.

    Raises:
        InputError: no such output.
        LogError: channels are missing, misspelt or in another unit than the machine's.
        PoseError: the log leaves the workspace of the described machine.
    """
    _require_known(output)
    names = tuple(actuator.name for actuator in model.mechanism.actuators)
    _require_channels(model, log, output)
    prepared = prepare(log, preparation)
    regressor = _regressor(model, prepared, output, preparation.decimation)
    measured_names = [name for name in names if name in channels(prepared, "force")]
    measured = np.array([name in measured_names for name in names])
    forces = np.zeros((len(prepared[TIME]), len(names)))
    forces[:, measured] = samples(prepared, "force", measured_names)
    outputs, units = model.output_ports(output)
    if output == "joints":
        driven = list(model.assembly.driven)
        forces = forces @ model.assembly.loops.transmission[:, driven]
        measured = np.ones(len(driven), dtype=bool)
    time = prepared[TIME].to_numpy()
    factor = preparation.decimation
    if factor > 1:
        forces = decimate(forces, factor)
        time = time[::factor][: len(forces)]
    return RegressionData(
        regressor=regressor,
        forces=forces,
        parameters=tuple(p.name for p in model.parameters),
        parameter_units=tuple(p.unit for p in model.parameters),
        outputs=outputs,
        output_units=units,
        time=time,
        measured=measured,
        ties=ties,
    )


def motion_regressor(
    model: Model, log: xr.Dataset, preparation: Preparation, *, output: str = "actuators"
) -> np.ndarray:
    """Regressor (N, n_out, n_pi) of a motion that has no forces, prepared as `regression_data` prepares its log.

    Of the commanded motion, at the samples of the measured one, it is the instruments of ideal tracking (see
    `InstrumentalVariables`).

    Raises:
        InputError: no such output.
        LogError: positions are missing, misspelt or in another unit than the machine's.
        PoseError: the motion leaves the workspace of the described machine.
    """
    _require_known(output)
    port = model.actuators.ports["position"]
    problems = channel_problems(log, {"position": dict(zip(port.columns, port.units, strict=True))})
    if problems:
        raise LogError(problems)
    return _regressor(model, prepare(log, preparation), output, preparation.decimation)


def _require_known(output: str) -> None:
    if output not in OUTPUTS:
        raise InputError(Problem(where="output", what=f"{output!r} is unknown", remedy=" or ".join(OUTPUTS)))


def _regressor(model: Model, prepared: xr.Dataset, output: str, factor: int) -> np.ndarray:
    """Regressor (N', n_out, n_pi) of a prepared log; messages count samples in it."""
    names = tuple(actuator.name for actuator in model.mechanism.actuators)
    position, velocity, acceleration = (
        samples(prepared, kind, names) for kind in ("position", "velocity", "acceleration")
    )
    try:
        start = model.actuators.track(position).q if model.assembly.rows else None
        return _decimated_regressor(model, (position, velocity, acceleration), start, output, factor)
    except PoseError as error:
        counted = f" (counted from 0, which is {prepared[TIME].to_numpy()[0]:g} s in the log)"
        raise PoseError(replace(problem, what=problem.what + counted) for problem in error.problems) from error


def _decimated_regressor(
    model: Model,
    motion: tuple[np.ndarray, np.ndarray, np.ndarray],
    start: np.ndarray | None,
    output: str,
    factor: int,
) -> np.ndarray:
    """Regressor (N', n_out, n_pi) at the decimated rate; at the full rate it is never in memory as a whole."""
    dry = _dry_friction(model)

    def regressor(part: slice) -> np.ndarray:
        position, velocity, acceleration = (signal[part] for signal in motion)
        rows = model.actuators.regressor(
            position, velocity, acceleration, output=output, start=None if start is None else start[part]
        )
        for actuator, column in dry:
            rows[velocity[:, actuator] == 0.0, :, column] = 0.0
        return rows

    everything = slice(0, len(motion[0]))
    if factor == 1:
        return regressor(everything)
    try:
        return decimate_in_parts(regressor, len(motion[0]), factor)
    except PoseError:
        return regressor(everything)  # raises again, with samples counted from the beginning of the log


def _dry_friction(model: Model) -> tuple[tuple[int, int], ...]:
    """Actuators with Coulomb friction of their own, and its column.

    Where joints are coupled an actuator's velocity is a sum of joint velocities. Of an actuator at rest it is rounding,
    whose sign must not enter: the measured velocity says that it rests.
    """
    columns = {parameter.name: k for k, parameter in enumerate(model.parameters)}
    named = ((i, f"{actuator.name}.coulomb") for i, actuator in enumerate(model.mechanism.actuators))
    return tuple((i, columns[name]) for i, name in named if name in columns)


def _require_channels(model: Model, log: xr.Dataset, output: str) -> None:
    port = model.actuators.ports["position"]
    units = dict(zip(port.columns, model.output_ports("actuators")[1], strict=True))
    measured = channels(log, "force")
    present = [name for name in port.columns if name in measured]
    problems = channel_problems(
        log,
        {
            "position": dict(zip(port.columns, port.units, strict=True)),
            "force": {name: unit for name, unit in units.items() if name in present or output == "joints"},
        },
    )
    if not present and output != "joints":
        problems.append(
            Problem(
                where="force",
                what=f"the log has no force of an actuator; it has {', '.join(measured) or 'none'}",
                remedy=f"map columns to some or all of {', '.join(port.columns)}",
            )
        )
    elif output != "joints":
        absent = [name for name in port.columns if name not in present]
        problems += [
            Problem(where=f"force.{name}", what="is no actuator of the machine", remedy=meant)
            for name in measured
            if name not in port.columns and (meant := suggestion(name, absent))
        ]
    if problems:
        raise LogError(problems)
