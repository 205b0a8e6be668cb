"""Columns of asymmetric and Stribeck friction of any freedom or motor along a log, passive joints too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tauloop.errors import IdentificationError, Problem
from tauloop.functions import Model
from tauloop.identify.columns import asymmetric_friction, stribeck_friction
from tauloop.identify.from_log import present_rows, require_positions
from tauloop.logs import Preparation, decimate, prepared_signals, samples
from tauloop.logs.channels import Log
from tauloop.mechanism.suggestions import suggestion


def friction_columns(
    model: Model,
    log: Log,
    preparation: Preparation,
    *,
    asymmetric: Sequence[str] = (),
    stribeck: Mapping[str, float] | None = None,
    output: str = "actuators",
) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """Columns for `with_columns`, beside `regression_data` of the same log, preparation and output.

    Friction f on an element (a joint's freedom, a telescopic rod, a motor) that moves at v_e = J_e w, w the speeds of
    the leading actuators, adds J_e^T f to the forces on these (virtual work). Each element in `asymmetric` has a column
    of |sign(v_e)| (``NAME.coulomb_asymmetry``) and one of |v_e| (``NAME.viscous_asymmetry``), each in `stribeck` has
    one of sign(v_e) exp(-(v_e / v_s)^2) (``NAME.stribeck``), as `asymmetric_friction` and `stribeck_friction` say.

    Args:
        model: the machine.
        log: positions of all actuators, or of the leading ones of many.
        preparation: filtering, trimming, decimation.
        asymmetric: names of elements.
        stribeck: Stribeck speed v_s (rad/s or m/s) by name of the element.
        output: "actuators", or "joints" for forces on the driven coordinates.

    Returns:
        Columns (N, n_out, n_new), their names and their units.

    Raises:
        IdentificationError: a name is no element, or a speed is not positive; all problems.
        InputError: no such output.
        LogError: positions are missing, misspelt or in another unit than the machine's.
        PoseError: the motion leaves the workspace of the described machine.
    """
    speeds = dict(stribeck or {})
    turns = elements(model)
    require_elements(model, [*asymmetric, *speeds])
    require_positions(model, log, output)
    prepared = prepared_signals(log, preparation)
    port = model.actuators.ports["position"].columns
    position, velocity = (samples(prepared, kind, port) for kind in ("position", "velocity"))
    start = model.actuators.track(position).q if model.assembly.rows else None
    G = model.actuators.embedding(position, start=start)
    every = np.concatenate([G, model.assembly.loops.transmission @ G], axis=1)
    place = {name: i for i, name in enumerate(_moving(model))}

    def moved(names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        J = every[:, [place[name] for name in names]]
        speed = np.einsum("nem,nm->ne", J, velocity)
        if output == "joints":
            leading, driven = list(model.assembly.leading), list(model.assembly.leading_driven)
            J = J @ model.assembly.loops.transmission[np.ix_(leading, driven)]
        return speed, J.transpose(0, 2, 1)

    parts, names, units = [], [], []
    if asymmetric:
        speed, rows = moved(asymmetric)
        parts.append(asymmetric_friction(speed, rows))
        force = ["N m" if turns[name] else "N" for name in asymmetric]
        names += [f"{name}.{kind}_asymmetry" for kind in ("coulomb", "viscous") for name in asymmetric]
        units += [*force, *("N m s/rad" if turns[name] else "N s/m" for name in asymmetric)]
    if speeds:
        speed, rows = moved(tuple(speeds))
        parts.append(stribeck_friction(speed, np.array(list(speeds.values())), rows))
        names += [f"{name}.stribeck" for name in speeds]
        units += ["N m" if turns[name] else "N" for name in speeds]
    columns = np.concatenate(parts, axis=2)
    return (
        decimated_rows(columns, present_rows(model, prepared, output), preparation.decimation),
        tuple(names),
        tuple(units),
    )


def decimated_rows(columns: np.ndarray, present: np.ndarray | None, factor: int) -> np.ndarray:
    """Columns (N, n_out, n_new) decimated as the regressor is, without the rows that are not `present` (N, n_out)."""
    if present is None:
        return decimate(columns, factor)
    found = decimate(columns * present[:, :, None], factor)
    return np.asarray(found * present[::factor][: len(found), :, None])


def elements(model: Model) -> dict[str, bool]:
    """Whether each element that may have friction turns (rad/s, N m) or slides: freedoms of joints, rods, motors."""
    turns = (*model.topology.angular, *(model.topology.motor_turns(actuator) for actuator in model.mechanism.actuators))
    return dict(zip(_moving(model), turns, strict=True))


def _moving(model: Model) -> tuple[str, ...]:
    return (*model.topology.velocity_names, *(actuator.name for actuator in model.mechanism.actuators))


def require_elements(model: Model, names: Sequence[str]) -> None:
    """Refuse names that are no element, or none at all.

    Raises:
        IdentificationError: with all problems.
    """
    known = tuple(elements(model))
    problems = [
        Problem(
            where=name,
            what="is no freedom of a joint, telescopic rod or motor with a coordinate of its own",
            remedy=suggestion(name, known) or f"choose among {', '.join(known)}",
        )
        for name in names
        if name not in known
    ]
    if not names:
        remedy = f"choose among {', '.join(known)}"
        problems.append(Problem(where="friction", what="no element is named", remedy=remedy))
    if problems:
        raise IdentificationError(problems)
