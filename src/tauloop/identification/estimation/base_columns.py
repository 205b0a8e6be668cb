"""The regression behind an estimate: base columns of the regressor, in full and condensed."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.identification.regression.base_parameters import BaseParameters
from tauloop.identification.regression.data import RegressionData


@dataclass(frozen=True, kw_only=True, eq=False)
class BaseRegression(ReprMixin):
    """Forces f = Y p of the r base parameters, in the measured outputs.

    Attributes:
        data: the samples.
        base: the base parameters.
        triangles: (n_out, m, r + 1): for each measured output a matrix with the R^T R of [Y f],
            forces last.
    """

    data: RegressionData
    base: BaseParameters
    triangles: np.ndarray

    @property
    def samples(self) -> np.ndarray:
        """Number of samples (n_out,) of every output."""
        return self.data.counts

    @cached_property
    def regressor(self) -> np.ndarray:
        """Y (N, n_out, r), a copy that cannot be written to."""
        columns = base_columns(self.data, self.data.regressor, self.base)
        columns.flags.writeable = False
        return columns

    @property
    def forces(self) -> np.ndarray:
        """Forces f (N, n_out), less the share of known parameters."""
        data, kept = self.data, self.data.kept
        if data.ties is None:
            return data.forces[:, kept]
        known = np.asarray(data.ties.offset)
        return np.asarray(data.forces[:, kept] - data.regressor[:, kept] @ known)

    def residual(self, values: np.ndarray) -> np.ndarray:
        """Residual f - Y p (N, n_out)."""
        return np.asarray(self.forces - self.regressor @ values)


def base_columns(data: RegressionData, regressor: np.ndarray, base: BaseParameters) -> np.ndarray:
    """Base columns (N, n_out, r) of a whole regressor (N, n_out, n_p) that has the ties of `data`; measured outputs."""
    measured = regressor if len(data.kept) == regressor.shape[1] else regressor[:, data.kept]
    if data.ties is None:
        return np.asarray(measured[:, :, base.independent])
    return np.asarray(measured @ data.ties.matrix[:, base.independent])
