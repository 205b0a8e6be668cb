"""Columns beside those of the machine's own parameters: asymmetric and Stribeck friction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import IdentificationError
from tauloop.identification.regression.data import RegressionData


def with_columns(
    data: RegressionData, columns: np.ndarray, names: Sequence[str], units: Sequence[str]
) -> RegressionData:
    """Regression data with further unknowns.

    Args:
        data: samples without ties, or the ties' unknowns stay and the new ones are added to them.
        columns: (N, n_out, n_new), decimated like the regressor.
        names, units: of the new columns.

    Raises:
        IdentificationError: shapes or names do not suit.
    """
    if columns.shape[:2] != data.regressor.shape[:2] or columns.shape[2:] != (len(names),):
        expected = (*data.regressor.shape[:2], len(names))
        raise IdentificationError.of(
            "columns", f"have shape {columns.shape}", f"give {expected}, as the regressor"
        )
    ties = data.ties
    if ties is not None:
        zero, count = np.zeros((len(data.parameters), len(names))), len(ties.parameters)
        added = np.hstack([np.zeros((len(names), count)), np.eye(len(names))])
        ties = replace(
            ties,
            matrix=np.vstack([np.hstack([ties.matrix, zero]), added]),
            offset=np.append(np.asarray(ties.offset), np.zeros(len(names))),
            parameters=(*ties.parameters, *names),
            units=(*ties.units, *units),
        )
    return replace(
        data,
        regressor=np.concatenate([data.regressor, columns], axis=2),
        parameters=(*data.parameters, *names),
        parameter_units=(*data.parameter_units, *units),
        ties=ties,
    )


def asymmetric_friction(velocity: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """Columns (N, n_out, 2 n) by which Coulomb and viscous friction differ from one direction to the other.

    With F = F_c sign(v) + F_v v + F_0 in the machine, the force |v| F_a makes the viscous
    coefficient F_v + F_a forwards and F_v - F_a backwards, and |sign(v)| F_b does the same for
    Coulomb friction; the latter differs from an offset F_0 only in standstill. First |sign(v)|,
    then |v|, per coordinate.

    Args:
        velocity: (N, n), of the coordinates with friction; one output each without `rows`.
        rows: (N, n_out, n), what a unit of force on each adds to the outputs (see
            `friction_columns`).
    """
    columns = (np.abs(np.sign(velocity)), np.abs(velocity))
    return np.concatenate([_on_rows(column, rows) for column in columns], axis=2)


def stribeck_friction(
    velocity: np.ndarray, speed: np.ndarray, rows: np.ndarray | None = None
) -> np.ndarray:
    """Columns (N, n_out, n) of sign(v) exp(-(v / v_s)^2): breakaway friction above Coulomb's.

    The Stribeck speed v_s enters nonlinearly: scan it and choose by hold-out (Armstrong-Helouvry,
    Dupont and Canudas de Wit 1994, A survey of models, analysis tools and compensation methods for
    the control of machines with friction).

    Args:
        velocity: (N, n); one output each without `rows`.
        speed: v_s (n,), positive.
        rows: (N, n_out, n), what a unit of force on each adds to the outputs.

    Raises:
        IdentificationError: a Stribeck speed is not positive.
    """
    speed = np.asarray(speed, dtype=float)
    if not np.all(speed > 0.0):
        raise IdentificationError.of(
            "speed", f"{speed.min():g} is not positive", "give speeds above zero"
        )
    return _on_rows(np.sign(velocity) * np.exp(-((velocity / speed) ** 2)), rows)


def _on_rows(columns: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
    return np.asarray((np.eye(columns.shape[1]) if rows is None else rows) * columns[:, None, :])
