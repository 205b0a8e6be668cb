"""Identification: base parameters from measured forces, with their accuracy, judged on held-out data."""

from tauloop.identification.estimation.base_columns import base_columns
from tauloop.identification.estimation.clustered_errors import ClusteredErrors
from tauloop.identification.estimation.error_models import (
    AutocorrelatedErrors,
    ErrorModel,
    FilteredErrors,
    IndependentErrors,
    decimation_correlation,
)
from tauloop.identification.estimation.errors_in_variables import InstrumentalVariables, TotalLeastSquares
from tauloop.identification.estimation.estimators import (
    Estimate,
    Estimator,
    KnownNoise,
    OrdinaryLeastSquares,
    WeightedLeastSquares,
)
from tauloop.identification.estimation.evaluation import OutputFit, evaluate
from tauloop.identification.estimation.fitting import fit
from tauloop.identification.estimation.log_comparison import LogComparison, compare_logs
from tauloop.identification.estimation.result import Identification
from tauloop.identification.estimation.robust import IterativelyReweightedLeastSquares
from tauloop.identification.estimation.whiteness import Whiteness, whiteness
from tauloop.identification.excitation.criteria import LogDeterminant
from tauloop.identification.excitation.design import excite
from tauloop.identification.excitation.drives import driven_at
from tauloop.identification.excitation.limits import ExcitationLimits
from tauloop.identification.excitation.options import ExcitationOptions
from tauloop.identification.excitation.problem import ExcitationProblem, ExcitationTask
from tauloop.identification.excitation.result import Conditions, Excitation, slow_sampling
from tauloop.identification.excitation.search import random_search
from tauloop.identification.excitation.solver import SolverOptions
from tauloop.identification.faults.forces import wrong_signs
from tauloop.identification.faults.signals import clipped, spikes
from tauloop.identification.faults.unexcited import unexcited
from tauloop.identification.friction.columns import friction_columns
from tauloop.identification.friction.element_motion import ElementMotion, element_motion
from tauloop.identification.friction.presliding import (
    PreslidingChoice,
    choose_presliding,
    dahl_state,
    presliding_columns,
)
from tauloop.identification.instruments import simulated_instruments
from tauloop.identification.machine_result import MachineIdentification
from tauloop.identification.options import IdentificationOptions, PreparationOptions, TermOptions
from tauloop.identification.parameters.cones import Cone, Regularisation, RegularisedBody, cones
from tauloop.identification.parameters.consistency import ConsistentIdentification, PhysicallyConsistent, fit_consistent
from tauloop.identification.parameters.essential import EssentialParameters, Removal, essential_parameters
from tauloop.identification.parameters.known import DriveGains, drive_gains, known_parameters, with_payload
from tauloop.identification.parameters.regroup import RegroupingOptions, regroup
from tauloop.identification.parameters.regrouping import AnalyticRegrouping, analytic_regrouping
from tauloop.identification.parameters.regrouping_columns import ProductColumns, SetColumns, StandardColumns
from tauloop.identification.parameters.write_back import identified_mechanism
from tauloop.identification.preparation.channel_choice import ChannelChoice, choose_channels, usable_velocities
from tauloop.identification.preparation.filter_scan import FilterScan, FilterTrial, scan_filters
from tauloop.identification.preparation.measured import MeasuredLog
from tauloop.identification.preparation.periodic import periodic_regression
from tauloop.identification.preparation.periods import PeriodAverage, average_periods, fourier_derivatives
from tauloop.identification.preparation.two_runs import CONNECTED, OWN, SubtractionOptions, TwoRuns, subtract
from tauloop.identification.regression.base_parameters import (
    BaseParameter,
    BaseParameters,
    RankOptions,
    Term,
    base_parameters,
)
from tauloop.identification.regression.columns import (
    asymmetric_friction,
    stribeck_friction,
    with_columns,
)
from tauloop.identification.regression.data import RegressionData, Ties, split, ties
from tauloop.identification.regression.from_log import dynamic_leaves, leaf_ties, motion_regressor, regression_data
from tauloop.identification.regression.streaming import Condensed, condense_parts, estimate_condensed, merge, split_each
from tauloop.identification.workflow import identification_model, identify

__all__ = [
    "CONNECTED",
    "OWN",
    "AnalyticRegrouping",
    "AutocorrelatedErrors",
    "BaseParameter",
    "BaseParameters",
    "ChannelChoice",
    "ClusteredErrors",
    "Condensed",
    "Conditions",
    "Cone",
    "ConsistentIdentification",
    "DriveGains",
    "ElementMotion",
    "ErrorModel",
    "EssentialParameters",
    "Estimate",
    "Estimator",
    "Excitation",
    "ExcitationLimits",
    "ExcitationOptions",
    "ExcitationProblem",
    "ExcitationTask",
    "FilterScan",
    "FilterTrial",
    "FilteredErrors",
    "Identification",
    "IdentificationOptions",
    "IndependentErrors",
    "InstrumentalVariables",
    "IterativelyReweightedLeastSquares",
    "KnownNoise",
    "LogComparison",
    "LogDeterminant",
    "MachineIdentification",
    "MeasuredLog",
    "OrdinaryLeastSquares",
    "OutputFit",
    "PeriodAverage",
    "PhysicallyConsistent",
    "PreparationOptions",
    "PreslidingChoice",
    "ProductColumns",
    "RankOptions",
    "RegressionData",
    "RegroupingOptions",
    "Regularisation",
    "RegularisedBody",
    "Removal",
    "SetColumns",
    "SolverOptions",
    "StandardColumns",
    "SubtractionOptions",
    "Term",
    "TermOptions",
    "Ties",
    "TotalLeastSquares",
    "TwoRuns",
    "WeightedLeastSquares",
    "Whiteness",
    "analytic_regrouping",
    "asymmetric_friction",
    "average_periods",
    "base_columns",
    "base_parameters",
    "choose_channels",
    "choose_presliding",
    "clipped",
    "compare_logs",
    "condense_parts",
    "cones",
    "dahl_state",
    "decimation_correlation",
    "drive_gains",
    "driven_at",
    "dynamic_leaves",
    "element_motion",
    "essential_parameters",
    "estimate_condensed",
    "evaluate",
    "excite",
    "fit",
    "fit_consistent",
    "fourier_derivatives",
    "friction_columns",
    "identification_model",
    "identified_mechanism",
    "identify",
    "known_parameters",
    "leaf_ties",
    "merge",
    "motion_regressor",
    "periodic_regression",
    "presliding_columns",
    "random_search",
    "regression_data",
    "regroup",
    "scan_filters",
    "simulated_instruments",
    "slow_sampling",
    "spikes",
    "split",
    "split_each",
    "stribeck_friction",
    "subtract",
    "ties",
    "unexcited",
    "usable_velocities",
    "whiteness",
    "with_columns",
    "with_payload",
    "wrong_signs",
]
__dir__ = __all__.copy
