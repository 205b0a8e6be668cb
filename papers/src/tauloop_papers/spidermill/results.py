"""Results of an identification with a reduced model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tauloop.identification import AnalyticRegrouping, Conditions, Excitation, Identification
from tauloop.motion import FourierSeries
from tauloop_papers.reproduction import Reproduction
from tauloop_papers.spidermill.models import Fit
from tauloop_papers.spidermill.read_out import ReadOut
from tauloop_papers.spidermill.settings import ReducedSettings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Regrouped:
    """The minimal parameters, computed in three ways.

    Attributes:
        model: those of the reduced model.
        other: those of its other reading.
        printed: those of the paper's minimal set, in the other reading.
        misfits: shares of the columns that the printed set cannot represent: of the model, and of
            the other reading.
    """

    model: AnalyticRegrouping
    other: AnalyticRegrouping
    printed: AnalyticRegrouping
    misfits: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Growth:
    """Mean relative verification errors (n, n_u) by size of the neglected effects.

    Attributes:
        factors: factors of the neglected rods' masses.
        before_by_factor, after_by_factor: errors with the parameters of the full machine and with
            estimated ones, no offset.
        sizes: sizes of the offset, m.
        before_by_size, after_by_size: the same, with the masses as they are.
        bare: largest difference of model and plant without both effects, divided by the largest
            force.
    """

    factors: np.ndarray
    before_by_factor: np.ndarray
    after_by_factor: np.ndarray
    sizes: np.ndarray
    before_by_size: np.ndarray
    after_by_size: np.ndarray
    bare: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Excited:
    """The motions of the active joints.

    Attributes:
        series: series for identification and verification.
        conditions: condition numbers of the first.
        search: results of the search: random series, and an optimized one if the settings have
            none.
    """

    series: tuple[FourierSeries, FourierSeries]
    conditions: Conditions
    search: Excitation


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Findings:
    """All results of the identification.

    Attributes:
        excited: the motions of the active joints.
        identification, verification: forces on the two trajectories.
        estimate: the minimal parameters, estimated on the first trajectory and verified on the
            second.
        regrouped: the minimal parameters as formulas.
        calculated, elsewhere: values of these with the parameters of the full machine, and in the
            other reading, SI.
        printed: their values as they follow from the paper's estimates (in the other reading), SI.
        other_errors: mean relative errors (2, n_u) of the other reading on both trajectories, not
            estimated.
        read_out: masses, centers and inertias that follow from the minimal parameters.
        growth: errors by size of the neglected effects.
        actuators: names of the actuators.
    """

    excited: Excited
    identification: Fit
    verification: Fit
    estimate: Identification
    regrouped: Regrouped
    calculated: np.ndarray
    elsewhere: np.ndarray
    printed: np.ndarray
    other_errors: np.ndarray
    read_out: ReadOut
    growth: Growth
    actuators: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReducedIdentification(Reproduction):
    """The experiment's results, with its settings."""

    settings: ReducedSettings
    findings: Findings
