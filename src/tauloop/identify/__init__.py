"""Identification: base parameters from measured forces, with their accuracy, judged on held-out data."""

from tauloop.identify.base_parameters import BaseParameter, BaseParameters, RankOptions, Term, base_parameters
from tauloop.identify.data import RegressionData, Ties, split, ties
from tauloop.identify.estimators import Estimate, Estimator, OrdinaryLeastSquares, WeightedLeastSquares
from tauloop.identify.evaluation import OutputFit, evaluate
from tauloop.identify.fitting import fit
from tauloop.identify.result import Identification

__all__ = [
    "BaseParameter",
    "BaseParameters",
    "Estimate",
    "Estimator",
    "Identification",
    "OrdinaryLeastSquares",
    "OutputFit",
    "RankOptions",
    "RegressionData",
    "Term",
    "Ties",
    "WeightedLeastSquares",
    "base_parameters",
    "evaluate",
    "fit",
    "split",
    "ties",
]
