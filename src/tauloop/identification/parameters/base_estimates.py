"""Estimates of base parameters, as an identification has found or written them."""

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
    """Values b of base parameters, b = B p + e with the covariance C of e.

    Attributes:
        parameters: (n,) names of p: standard parameters or leaf parameters of a machine, or
            expressions in these, such as ``m1 * d_c1``.
        regrouping: B (r, n).
        values: b (r,), SI.
        covariance: C (r, r); zero for exact values.
        representatives: (r,) the parameter of each base parameter whose column of the regressor
            stands for it.
        known: values, SI, of the other columns that the forces of the fit hold.
        noise: standard deviation, SI, of what the fit leaves of each output, by its name.
        has_gains: whether the forces were scaled by gains that were found with the parameters.
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
        """Those of an identification: of whole logs where these were fitted."""
        fit = (
            identification
            if isinstance(identification, Identification)
            else identification.whole_log or identification.identification
        )
        gains = None if isinstance(identification, Identification) else identification.gains
        return replace(_from_plain(fit.as_dict()), has_gains=gains is not None)

    @staticmethod
    def read(path: Path) -> BaseEstimates:
        """Those in the JSON file of an identification (``tauloop identify ... --out``).

        Raises:
            InputError: it cannot be read, or is no such file.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            return replace(
                _from_plain(content.get("whole_log") or content),
                has_gains=bool(content.get("gains")),
            )
        except OSError as error:
            raise InputError.of(
                str(path), f"cannot be read: {error.strerror}", "name a file that is there"
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            what = (
                f"holds no base parameters with their covariance ({type(error).__name__}: {error})"
            )
            raise InputError.of(
                str(path), what, "write it with `tauloop identify ... --out`"
            ) from None


def _from_plain(content: dict[str, Any]) -> BaseEstimates:
    rows = content["base_parameters"]
    terms = [
        {row["representative"]: 1.0} | {t["parameter"]: t["coefficient"] for t in row["terms"]}
        for row in rows
    ]
    names = tuple(dict.fromkeys(name for row in terms for name in row))
    representatives = tuple(row["representative"] for row in rows)
    return BaseEstimates(
        parameters=names,
        regrouping=np.array([[row.get(name, 0.0) for name in names] for row in terms]),
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
