"""The regression that an estimator solves: base columns of all samples, and their QR factors."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.identification.regression.base_parameters import BaseParameters
from tauloop.identification.regression.data import RegressionData


@dataclass(frozen=True, kw_only=True, eq=False)
class BaseRegression(ReprMixin):
    """The regression f = Y p of the measured forces on the r base parameters.

    Attributes:
        data: the samples.
        base: the base parameters.
        triangles: (n_out, m, r + 1), one upper triangular QR factor R for each measured output,
            with R^T R = [Y f]^T [Y f]; the forces are the last column.
    """

    data: RegressionData
    base: BaseParameters
    triangles: np.ndarray

    @property
    def samples(self) -> np.ndarray:
        """Number of samples (n_out,) of each measured output."""
        return self.data.counts

    @cached_property
    def regressor(self) -> np.ndarray:
        """The base columns Y (N, n_out, r), as a read-only copy."""
        columns = base_columns(self.data, self.data.regressor, self.base)
        columns.flags.writeable = False
        return columns

    @property
    def forces(self) -> np.ndarray:
        """The measured forces f (N, n_out), minus the contribution of known parameters."""
        data = self.data
        measured = data.kept
        if data.ties is None:
            return data.forces[:, measured]
        known = np.asarray(data.ties.offset)
        return np.asarray(data.forces[:, measured] - data.regressor[:, measured] @ known)

    def residual(self, values: np.ndarray) -> np.ndarray:
        """Return the residual f - Y p (N, n_out)."""
        return np.asarray(self.forces - self.regressor @ values)


def base_columns(data: RegressionData, regressor: np.ndarray, base: BaseParameters) -> np.ndarray:
    """Return the base columns (N, n_out, r) of a regressor, in the measured outputs.

    Args:
        data: regression data, whose ties relate the regressor's columns to the unknowns.
        regressor: (N, n_out, n_p), of all outputs and all columns.
        base: the base parameters.
    """
    measured = regressor if len(data.kept) == regressor.shape[1] else regressor[:, data.kept]
    if data.ties is None:
        return np.asarray(measured[:, :, base.independent])
    return np.asarray(measured @ data.ties.matrix[:, base.independent])
