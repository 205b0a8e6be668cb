"""Identification: base parameters from measured forces, with their accuracy, judged on held-out data."""

from tauloop.identify.base_parameters import BaseParameter, BaseParameters, RankOptions, Term, base_parameters
from tauloop.identify.cones import Cone, Regularisation, RegularisedBody, cones
from tauloop.identify.consistency import ConsistentIdentification, PhysicallyConsistent, fit_consistent
from tauloop.identify.data import RegressionData, Ties, split, ties
from tauloop.identify.error_models import (
    AutocorrelatedErrors,
    ErrorModel,
    FilteredErrors,
    IndependentErrors,
    decimation_correlation,
)
from tauloop.identify.errors_in_variables import InstrumentalVariables, TotalLeastSquares
from tauloop.identify.estimators import Estimate, Estimator, OrdinaryLeastSquares, WeightedLeastSquares
from tauloop.identify.evaluation import OutputFit, evaluate
from tauloop.identify.fitting import fit
from tauloop.identify.result import Identification
from tauloop.identify.robust import IterativelyReweightedLeastSquares
from tauloop.identify.whiteness import Whiteness, whiteness

__all__ = [
    "AutocorrelatedErrors",
    "BaseParameter",
    "BaseParameters",
    "Cone",
    "ConsistentIdentification",
    "ErrorModel",
    "Estimate",
    "Estimator",
    "FilteredErrors",
    "Identification",
    "IndependentErrors",
    "InstrumentalVariables",
    "IterativelyReweightedLeastSquares",
    "OrdinaryLeastSquares",
    "OutputFit",
    "PhysicallyConsistent",
    "RankOptions",
    "RegressionData",
    "Regularisation",
    "RegularisedBody",
    "Term",
    "Ties",
    "TotalLeastSquares",
    "WeightedLeastSquares",
    "Whiteness",
    "base_parameters",
    "cones",
    "decimation_correlation",
    "evaluate",
    "fit",
    "fit_consistent",
    "split",
    "ties",
    "whiteness",
]
