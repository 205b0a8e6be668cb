"""Identification: base parameters from measured forces, with their accuracy, judged on held-out data."""

from tauloop.identification.base_parameters import BaseParameter, BaseParameters, RankOptions, Term, base_parameters
from tauloop.identification.channel_choice import ChannelChoice, choose_channels, usable_velocities
from tauloop.identification.clustered_errors import ClusteredErrors
from tauloop.identification.columns import asymmetric_friction, gain_regression, stribeck_friction, with_columns
from tauloop.identification.cones import Cone, Regularisation, RegularisedBody, cones
from tauloop.identification.consistency import ConsistentIdentification, PhysicallyConsistent, fit_consistent
from tauloop.identification.data import RegressionData, Ties, split, ties
from tauloop.identification.element_motion import ElementMotion, element_motion
from tauloop.identification.error_models import (
    AutocorrelatedErrors,
    ErrorModel,
    FilteredErrors,
    IndependentErrors,
    decimation_correlation,
)
from tauloop.identification.errors_in_variables import InstrumentalVariables, TotalLeastSquares
from tauloop.identification.essential import EssentialParameters, Removal, essential_parameters
from tauloop.identification.estimators import (
    Estimate,
    Estimator,
    KnownNoise,
    OrdinaryLeastSquares,
    WeightedLeastSquares,
)
from tauloop.identification.evaluation import OutputFit, evaluate
from tauloop.identification.faults import Delay, clipped, delays, wrong_signs
from tauloop.identification.filter_scan import FilterScan, FilterTrial, scan_filters
from tauloop.identification.fitting import fit
from tauloop.identification.friction_columns import friction_columns
from tauloop.identification.from_log import dynamic_leaves, leaf_ties, motion_regressor, regression_data
from tauloop.identification.instruments import simulated_instruments
from tauloop.identification.log_comparison import LogComparison, compare_logs
from tauloop.identification.payload import DriveGains, drive_gains, known_parameters, with_payload
from tauloop.identification.periods import PeriodAverage, average_periods, fourier_derivatives
from tauloop.identification.presliding import PreslidingChoice, choose_presliding, dahl_state, presliding_columns
from tauloop.identification.result import Identification
from tauloop.identification.robust import IterativelyReweightedLeastSquares
from tauloop.identification.signal_faults import spikes
from tauloop.identification.streaming import Condensed, condense_parts, estimate_condensed, merge, split_each
from tauloop.identification.unexcited import unexcited
from tauloop.identification.whiteness import Whiteness, whiteness
from tauloop.identification.write_back import identified_mechanism

__all__ = [
    "AutocorrelatedErrors",
    "BaseParameter",
    "BaseParameters",
    "ChannelChoice",
    "ClusteredErrors",
    "Condensed",
    "Cone",
    "ConsistentIdentification",
    "Delay",
    "DriveGains",
    "ElementMotion",
    "ErrorModel",
    "EssentialParameters",
    "Estimate",
    "Estimator",
    "FilterScan",
    "FilterTrial",
    "FilteredErrors",
    "Identification",
    "IndependentErrors",
    "InstrumentalVariables",
    "IterativelyReweightedLeastSquares",
    "KnownNoise",
    "LogComparison",
    "OrdinaryLeastSquares",
    "OutputFit",
    "PeriodAverage",
    "PhysicallyConsistent",
    "PreslidingChoice",
    "RankOptions",
    "RegressionData",
    "Regularisation",
    "RegularisedBody",
    "Removal",
    "Term",
    "Ties",
    "TotalLeastSquares",
    "WeightedLeastSquares",
    "Whiteness",
    "asymmetric_friction",
    "average_periods",
    "base_parameters",
    "choose_channels",
    "choose_presliding",
    "clipped",
    "compare_logs",
    "condense_parts",
    "cones",
    "dahl_state",
    "decimation_correlation",
    "delays",
    "drive_gains",
    "dynamic_leaves",
    "element_motion",
    "essential_parameters",
    "estimate_condensed",
    "evaluate",
    "fit",
    "fit_consistent",
    "fourier_derivatives",
    "friction_columns",
    "gain_regression",
    "identified_mechanism",
    "known_parameters",
    "leaf_ties",
    "merge",
    "motion_regressor",
    "presliding_columns",
    "regression_data",
    "scan_filters",
    "simulated_instruments",
    "spikes",
    "split",
    "split_each",
    "stribeck_friction",
    "ties",
    "unexcited",
    "usable_velocities",
    "whiteness",
    "with_columns",
    "with_payload",
    "wrong_signs",
]
