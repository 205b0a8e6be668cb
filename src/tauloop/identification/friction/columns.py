"""Columns of asymmetric and Stribeck friction of joints, rods and motors along a log.

The joints may be passive.

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
    """Return columns of friction, which `with_columns` adds to regression data.

    The log, preparation and output must be those of the `regression_data`. An element is a freedom
    of a joint, a telescopic rod, or a motor. It moves at the speed v_e = J_e w, where w are the
    speeds of the leading actuators. Friction f on it adds J_e^T f to the forces on the actuators
    (virtual work). Each element in `asymmetric` has the columns |sign(v_e)|
    (``NAME.coulomb_asymmetry``) and |v_e| (``NAME.viscous_asymmetry``). Each element in `stribeck`
    has the column sign(v_e) exp(-(v_e / v_s)^2) (``NAME.stribeck``). See `asymmetric_friction` and
    `stribeck_friction`.

    Args:
        model: the machine.
        log: log with the positions of all actuators; of redundant actuators, the leading ones.
        preparation: filtering, trimming, decimation.
        asymmetric: names of elements with asymmetric friction.
        stribeck: Stribeck velocity v_s (rad/s or m/s) by name of the element.
        output: "actuators", or "joints" for forces on the driven coordinates.

    Returns:
        Columns (N, n_out, n_new), their names and their units.

    Raises:
        IdentificationError: a name is not an element, or a velocity is not positive; lists all
            problems.
        InputError: the output does not exist.
        LogError: positions are missing, misspelled or in another unit than the machine's.
        PoseError: the motion leaves the workspace of the described machine.
    """
    speeds = dict(stribeck or {})
    require_elements(model, [*asymmetric, *speeds])
    return columns_along(element_motion(model, log, preparation, output=output), asymmetric, speeds)


def columns_along(
    motion: ElementMotion, asymmetric: Sequence[str], stribeck: Mapping[str, float]
) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """Return the columns of `friction_columns` for a known motion and at least one element."""
    blocks: list[np.ndarray] = []
    names: list[str] = []
    units: list[str] = []
    if asymmetric:
        blocks.append(asymmetric_friction(*motion.of(asymmetric)))
        names += [f"{name}.coulomb_asymmetry" for name in asymmetric]
        names += [f"{name}.viscous_asymmetry" for name in asymmetric]
        units += map(motion.force_unit, asymmetric)
        units += map(motion.damping_unit, asymmetric)
    if stribeck:
        speed, rows = motion.of(tuple(stribeck))
        blocks.append(stribeck_friction(speed, np.array(list(stribeck.values())), rows))
        names += [f"{name}.stribeck" for name in stribeck]
        units += map(motion.force_unit, stribeck)
    return motion.decimated(np.concatenate(blocks, axis=2)), tuple(names), tuple(units)
