"""Columns of asymmetric and Stribeck friction of any freedom or motor along a log, passive joints too.

Source: Armstrong-Helouvry, Dupont and Canudas de Wit 1994, A survey of models, analysis tools and
compensation methods for the control of machines with friction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tauloop.identification.friction.element_motion import (
    ElementMotion,
    element_motion,
    require_elements,
)
from tauloop.identification.regression.columns import asymmetric_friction, stribeck_friction
from tauloop.logs import Preparation
from tauloop.logs.log import Log
from tauloop.model import Model


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

    Friction f on an element (a joint's freedom, a telescopic rod, a motor) that moves at v_e = J_e
    w, w the speeds of the leading actuators, adds J_e^T f to the forces on these (virtual work).
    Each element in `asymmetric` has a column of |sign(v_e)| (``NAME.coulomb_asymmetry``) and one of
    |v_e| (``NAME.viscous_asymmetry``), each in `stribeck` has one of sign(v_e) exp(-(v_e / v_s)^2)
    (``NAME.stribeck``), as `asymmetric_friction` and `stribeck_friction` say.

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
    require_elements(model, [*asymmetric, *speeds])
    return columns_along(element_motion(model, log, preparation, output=output), asymmetric, speeds)


def columns_along(
    motion: ElementMotion, asymmetric: Sequence[str], stribeck: Mapping[str, float]
) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """As `friction_columns`, of a motion that is known, with at least one element."""
    parts: list[np.ndarray] = []
    names: list[str] = []
    units: list[str] = []
    if asymmetric:
        parts.append(asymmetric_friction(*motion.of(asymmetric)))
        names += [
            f"{name}.{kind}_asymmetry" for kind in ("coulomb", "viscous") for name in asymmetric
        ]
        units += [*map(motion.force_unit, asymmetric), *map(motion.damping_unit, asymmetric)]
    if stribeck:
        speed, rows = motion.of(tuple(stribeck))
        parts.append(stribeck_friction(speed, np.array(list(stribeck.values())), rows))
        names += [f"{name}.stribeck" for name in stribeck]
        units += map(motion.force_unit, stribeck)
    return motion.decimated(np.concatenate(parts, axis=2)), tuple(names), tuple(units)
