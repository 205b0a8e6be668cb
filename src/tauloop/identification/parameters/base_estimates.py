"""Estimates of base parameters, from an identification or from its JSON file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.identification.estimation.result import Identification
from tauloop.identification.machine_result import MachineIdentification


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BaseEstimates(ReprMixin):
    """Estimates b = B p + e of base parameters, with the covariance C of the errors e.

    Attributes:
        parameters: (n,) names of p: standard parameters or independent parameters of a machine, or
            expressions in these, such as ``m1 * d_c1``.
        regrouping: matrix B (r, n) of the base parameters' combinations.
        values: values b (r,), SI.
        covariance: covariance C (r, r), SI; zero for exact values.
        representatives: (r,) the parameter that represents each base parameter; its column of the
            regressor is the base column.
        known: values, SI, of the other columns that contribute to the forces of the fit.
        noise: standard deviation, SI, of the residual of each output, by name.
        has_gains: whether the forces were scaled by gains that were identified with the parameters.
    """

    parameters: tuple[str, ...]
    regrouping: np.ndarray
    values: np.ndarray
    covariance: np.ndarray
    representatives: tuple[str, ...] = ()
    known: Mapping[str, float] = field(default_factory=dict)
    noise: Mapping[str, float] = field(default_factory=dict)
    has_gains: bool = False

    @staticmethod
    def of(identification: Identification | MachineIdentification) -> BaseEstimates:
        """Return the estimates of an identification, from the fit to whole logs if there is one."""
        if isinstance(identification, Identification):
            return _from_plain(identification.as_dict())
        fit = identification.whole_log or identification.identification
        return replace(_from_plain(fit.as_dict()), has_gains=identification.gains is not None)

    @staticmethod
    def read(path: Path) -> BaseEstimates:
        """Return the estimates in the JSON file of an identification.

        The file is written by ``tauloop identify ... --out``.

        Raises:
            InputError: the file cannot be read, or does not contain base parameters.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            return replace(
                _from_plain(content.get("whole_log") or content),
                has_gains=bool(content.get("gains")),
            )
        except OSError as error:
            raise InputError.of(
                str(path), f"cannot be read: {error.strerror}", "give an existing file"
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError.of(
                str(path),
                f"does not contain base parameters with their covariance ({type(error).__name__}: {error})",
                "write it with `tauloop identify ... --out`",
            ) from None


def _from_plain(content: dict[str, Any]) -> BaseEstimates:
    """Return the estimates in the plain data of an identification."""
    rows = content["base_parameters"]
    combinations = []
    for row in rows:
        coefficients = {row["representative"]: 1.0}
        coefficients |= {term["parameter"]: term["coefficient"] for term in row["terms"]}
        combinations.append(coefficients)
    names = tuple(dict.fromkeys(name for row in combinations for name in row))
    regrouping = np.zeros((len(combinations), len(names)))
    for row, coefficients in zip(regrouping, combinations, strict=True):
        row[:] = [coefficients.get(name, 0.0) for name in names]
    representatives = tuple(row["representative"] for row in rows)
    return BaseEstimates(
        parameters=names,
        regrouping=regrouping,
        values=np.array([row["value"] for row in rows]),
        covariance=np.array(content["covariance"], dtype=float),
        representatives=representatives,
        known={
            name: float(value)
            for name, value in content.get("regressor_parameters", {}).items()
            if value and name not in representatives
        },
        noise={output["name"]: float(output["noise"]) for output in content.get("outputs", ())},
    )
