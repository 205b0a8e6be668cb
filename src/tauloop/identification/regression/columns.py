"""Additional regression columns: asymmetric and Stribeck friction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import IdentificationError
from tauloop.identification.regression.data import RegressionData


def with_columns(
    data: RegressionData, columns: np.ndarray, names: Sequence[str], units: Sequence[str]
) -> RegressionData:
    """Return regression data with additional unknowns.

    Args:
        data: the samples; if they have ties, the new unknowns are added to the unknowns of the
            ties.
        columns: (N, n_out, n_new) columns with the decimation of the regressor.
        names, units: names and units of the new columns.

    Raises:
        IdentificationError: shapes or names do not match.
    """
    if columns.shape[:2] != data.regressor.shape[:2] or columns.shape[2:] != (len(names),):
        expected = (*data.regressor.shape[:2], len(names))
        raise IdentificationError.of(
            "columns",
            f"have shape {columns.shape}",
            f"give {expected}, as in the regressor",
        )
    ties = data.ties
    if ties is not None:
        rows, unknowns = ties.matrix.shape
        matrix = np.zeros((rows + len(names), unknowns + len(names)))
        matrix[:rows, :unknowns] = ties.matrix
        matrix[rows:, unknowns:] = np.eye(len(names))
        ties = replace(
            ties,
            matrix=matrix,
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
    """Return columns for the dependence of Coulomb and viscous friction on the direction of motion.

    Let the friction of the machine be F = F_c sign(v) + F_v v + F_0, with the velocity v. An
    additional force |v| F_a changes the viscous coefficient to F_v + F_a for positive and to
    F_v - F_a for negative velocities. Likewise, an additional force |sign(v)| F_b changes the
    Coulomb friction to F_c + F_b and F_c - F_b; it differs from an offset F_0 only at standstill.

    Args:
        velocity: (N, n) velocities of the coordinates with friction; without `rows`, each
            coordinate corresponds to one output.
        rows: (N, n_out, n), change of the outputs per unit force on each coordinate (see
            `friction_columns`).

    Returns:
        Columns (N, n_out, 2 n): |sign(v)| of all coordinates, then |v| of all coordinates.
    """
    columns = (np.abs(np.sign(velocity)), np.abs(velocity))
    return np.concatenate([_on_rows(column, rows) for column in columns], axis=2)


def stribeck_friction(
    velocity: np.ndarray, speed: np.ndarray, rows: np.ndarray | None = None
) -> np.ndarray:
    """Return the columns (N, n_out, n) of sign(v) exp(-(v / v_s)^2), the Stribeck effect.

    The column is the friction at low speed in excess of Coulomb friction. The Stribeck speed v_s is
    a nonlinear parameter: choose it by validation among several values (Armstrong-Helouvry,
    Dupont and Canudas de Wit 1994, A survey of models, analysis tools and compensation methods for
    the control of machines with friction).

    Args:
        velocity: (N, n) velocities of the coordinates with friction; without `rows`, each
            coordinate corresponds to one output.
        speed: Stribeck speeds v_s (n,), positive.
        rows: (N, n_out, n), change of the outputs per unit force on each coordinate.

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
    """Return the columns (N, n_out, n) of the outputs for forces (N, n) on coordinates."""
    return np.asarray((np.eye(columns.shape[1]) if rows is None else rows) * columns[:, None, :])
