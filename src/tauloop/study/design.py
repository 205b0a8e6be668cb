"""Designs of experiments for Sobol indices, computed by SALib."""

from __future__ import annotations

import functools
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np

from tauloop.common.errors import EngineError
from tauloop.common.records import dataclass
from tauloop.study.file import Study

#: Smallest distance of design values from 0 and 1, where the quantiles of a normal distribution are
#: infinite.
EDGE_DISTANCE = 2.0**-53
#: Number of resamples for the confidence interval of an index.
RESAMPLES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SobolIndex:
    """The contribution of one input to the variance of a scalar.

    Attributes:
        scalar: name of the scalar.
        name: name of the input.
        first: fraction of the variance caused by this input without interactions.
        total: fraction of the variance including interactions with other inputs.
        first_interval: half-width of the 95 % confidence interval of `first`.
        total_interval: half-width of the 95 % confidence interval of `total`.
    """

    scalar: str
    name: str
    first: float
    total: float
    first_interval: float
    total_interval: float


def require_salib() -> None:
    """Raise an error if SALib is missing.

    Raises:
        EngineError: SALib is missing.
    """
    if find_spec("SALib") is None:
        raise EngineError.of(
            "design",
            "Sobol indices need SALib, which is not installed",
            "pip install 'tauloop[sensitivity]'",
        )


def _problem(count: int) -> dict[str, Any]:
    """Return SALib's description of a number of inputs between 0 and 1."""
    return {
        "num_vars": count,
        "names": [f"x{k}" for k in range(count)],
        "bounds": [[0.0, 1.0]] * count,
    }


def sample_design(study: Study) -> np.ndarray | None:
    """Return the design of a study with values between 0 and 1; None if samples are random."""
    if study.design != "sobol":
        return None
    return sobol_design(study.samples, len(study.drawn), study.seed)


@functools.lru_cache(maxsize=1)
def sobol_design(samples: int, count: int, seed: int) -> np.ndarray:
    """Return Saltelli's samples (samples (count + 2), count) between 0 and 1.

    Source: Saltelli 2010, Variance based sensitivity analysis of model output, Computer Physics
    Communications 181.

    Raises:
        EngineError: SALib is missing.
    """
    require_salib()
    from SALib.sample import sobol

    design = sobol.sample(
        _problem(count), samples, calc_second_order=False, scramble=True, seed=seed
    )
    return np.clip(np.asarray(design), EDGE_DISTANCE, 1.0 - EDGE_DISTANCE)


def sobol_indices(
    scalar: str, names: tuple[str, ...], values: np.ndarray, seed: int
) -> list[SobolIndex]:
    """Return the Sobol indices of a scalar at the samples of a design (N,).

    Raises:
        EngineError: SALib is missing.
    """
    require_salib()
    from SALib.analyze import sobol

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a scalar that does not vary
        indices = sobol.analyze(
            _problem(len(names)),
            values,
            calc_second_order=False,
            num_resamples=RESAMPLES,
            seed=seed,
        )
    columns = [np.nan_to_num(indices[key]).tolist() for key in ("S1", "ST", "S1_conf", "ST_conf")]
    return [
        SobolIndex(
            scalar=scalar, name=name, first=s1, total=st, first_interval=c1, total_interval=ct
        )
        for name, s1, st, c1, ct in zip(names, *columns, strict=True)
    ]
