"""Identification of base parameters from measured forces, with their accuracy on held-out data.

Examples:
    >>> import tauloop as tl
    >>> tl.identification.OrdinaryLeastSquares()
    OrdinaryLeastSquares()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.identification import excitation as excitation, online as online
    from tauloop.identification.drive_stiffness import (
        DriveEstimate as DriveEstimate,
        DriveStiffness as DriveStiffness,
        DriveStiffnessOptions as DriveStiffnessOptions,
        identify_drive_stiffness as identify_drive_stiffness,
    )
    from tauloop.identification.estimation.base_columns import (
        BaseRegression as BaseRegression,
        base_columns as base_columns,
    )
    from tauloop.identification.estimation.clustered_errors import (
        ClusteredErrors as ClusteredErrors,
    )
    from tauloop.identification.estimation.error_models import (
        AutocorrelatedErrors as AutocorrelatedErrors,
        ErrorModel as ErrorModel,
        FilteredErrors as FilteredErrors,
        IndependentErrors as IndependentErrors,
        ScoreSums as ScoreSums,
        decimation_correlation as decimation_correlation,
    )
    from tauloop.identification.estimation.errors_in_variables import (
        InstrumentalVariables as InstrumentalVariables,
        TotalLeastSquares as TotalLeastSquares,
    )
    from tauloop.identification.estimation.estimators import (
        Estimate as Estimate,
        Estimator as Estimator,
        KnownNoise as KnownNoise,
        OrdinaryLeastSquares as OrdinaryLeastSquares,
        WeightedLeastSquares as WeightedLeastSquares,
    )
    from tauloop.identification.estimation.evaluation import (
        OutputFit as OutputFit,
        evaluate as evaluate,
    )
    from tauloop.identification.estimation.fitting import fit_regression as fit_regression
    from tauloop.identification.estimation.log_comparison import (
        LogComparison as LogComparison,
        compare_logs as compare_logs,
    )
    from tauloop.identification.estimation.result import Identification as Identification
    from tauloop.identification.estimation.robust import (
        IterativelyReweightedLeastSquares as IterativelyReweightedLeastSquares,
    )
    from tauloop.identification.estimation.whiteness import (
        Whiteness as Whiteness,
        whiteness as whiteness,
    )
    from tauloop.identification.excitation.criteria import LogDeterminant as LogDeterminant
    from tauloop.identification.excitation.design import plan_excitation as plan_excitation
    from tauloop.identification.excitation.drives import driven_at as driven_at
    from tauloop.identification.excitation.limits import ExcitationLimits as ExcitationLimits
    from tauloop.identification.excitation.options import ExcitationOptions as ExcitationOptions
    from tauloop.identification.excitation.problem import (
        ExcitationProblem as ExcitationProblem,
        ExcitationTask as ExcitationTask,
    )
    from tauloop.identification.excitation.result import (
        Conditions as Conditions,
        Excitation as Excitation,
        slow_sampling as slow_sampling,
    )
    from tauloop.identification.excitation.search import random_search as random_search
    from tauloop.identification.excitation.solver import SolverOptions as SolverOptions
    from tauloop.identification.faults.forces import wrong_signs as wrong_signs
    from tauloop.identification.faults.recording.signals import (
        channels_with_spikes as channels_with_spikes,
        clipped_channels as clipped_channels,
    )
    from tauloop.identification.faults.unexcited import unexcited_directions as unexcited_directions
    from tauloop.identification.folded_logs import (
        FoldedLog as FoldedLog,
        ScoreOptions as ScoreOptions,
        arrays_of as arrays_of,
        fold_file as fold_file,
        read_scores as read_scores,
        require_foldable as require_foldable,
    )
    from tauloop.identification.friction.columns import friction_columns as friction_columns
    from tauloop.identification.friction.element_motion import (
        ElementMotion as ElementMotion,
        element_motion as element_motion,
    )
    from tauloop.identification.friction.presliding import (
        dahl_state as dahl_state,
        presliding_columns as presliding_columns,
    )
    from tauloop.identification.friction.presliding_lengths import (
        PreslidingChoice as PreslidingChoice,
        choose_presliding as choose_presliding,
    )
    from tauloop.identification.instruments import simulated_instruments as simulated_instruments
    from tauloop.identification.links.link_parameters import (
        LinkFamily as LinkFamily,
        LinkOptions as LinkOptions,
        LinkParameter as LinkParameter,
        LinkParameters as LinkParameters,
        link_parameters as link_parameters,
    )
    from tauloop.identification.log_bootstrap import (
        BootstrapDraw as BootstrapDraw,
        BootstrapOptions as BootstrapOptions,
        bootstrap_log as bootstrap_log,
    )
    from tauloop.identification.log_description import (
        DescribedColumn as DescribedColumn,
        LogDescription as LogDescription,
        LogDescriptionOptions as LogDescriptionOptions,
        describe_log as describe_log,
    )
    from tauloop.identification.machine_result import MachineIdentification as MachineIdentification
    from tauloop.identification.options import (
        IdentificationOptions as IdentificationOptions,
        PreparationOptions as PreparationOptions,
        TermOptions as TermOptions,
        texts_of as texts_of,
    )
    from tauloop.identification.parameters.base_estimates import BaseEstimates as BaseEstimates
    from tauloop.identification.parameters.cones import (
        Cone as Cone,
        Regularization as Regularization,
        RegularizedBody as RegularizedBody,
        consistency_cones as consistency_cones,
    )
    from tauloop.identification.parameters.consistency import (
        ConsistentIdentification as ConsistentIdentification,
        PhysicallyConsistent as PhysicallyConsistent,
        fit_consistent as fit_consistent,
    )
    from tauloop.identification.parameters.essential import (
        EssentialParameters as EssentialParameters,
        Removal as Removal,
        essential_parameters as essential_parameters,
    )
    from tauloop.identification.parameters.known import (
        DriveGains as DriveGains,
        drive_gains as drive_gains,
        known_parameters as known_parameters,
        with_payload as with_payload,
    )
    from tauloop.identification.parameters.write_back import (
        identified_mechanism as identified_mechanism,
    )
    from tauloop.identification.preparation.choice.channel_choice import (
        ChannelChoice as ChannelChoice,
        choose_channels as choose_channels,
        usable_velocities as usable_velocities,
    )
    from tauloop.identification.preparation.choice.filter_scan import (
        FilterScan as FilterScan,
        FilterTrial as FilterTrial,
        scan_filters as scan_filters,
    )
    from tauloop.identification.preparation.measured_log import MeasuredLog as MeasuredLog
    from tauloop.identification.preparation.periodic import (
        periodic_regression as periodic_regression,
    )
    from tauloop.identification.preparation.periods import (
        PeriodAverage as PeriodAverage,
        average_periods as average_periods,
        fourier_derivatives as fourier_derivatives,
    )
    from tauloop.identification.preparation.two_runs import (
        CONNECTED_FORCE as CONNECTED_FORCE,
        OWN_FORCE as OWN_FORCE,
        SubtractionOptions as SubtractionOptions,
        TwoRuns as TwoRuns,
        subtract_actuator_forces as subtract_actuator_forces,
    )
    from tauloop.identification.regression.base_parameters import (
        BaseParameter as BaseParameter,
        BaseParameters as BaseParameters,
        ParameterTerm as ParameterTerm,
        RankOptions as RankOptions,
        base_parameters as base_parameters,
    )
    from tauloop.identification.regression.columns import (
        asymmetric_friction as asymmetric_friction,
        stribeck_friction as stribeck_friction,
        with_columns as with_columns,
    )
    from tauloop.identification.regression.data import (
        RegressionData as RegressionData,
        split_data as split_data,
    )
    from tauloop.identification.regression.folded_scores import (
        ScoreDirections as ScoreDirections,
        score_spread as score_spread,
        score_sums as score_sums,
        with_autocorrelation as with_autocorrelation,
    )
    from tauloop.identification.regression.folding import (
        FoldedIdentification as FoldedIdentification,
        LogTriangle as LogTriangle,
        fold_all as fold_all,
        fold_log as fold_log,
        identify_folded as identify_folded,
        merge_triangles as merge_triangles,
        read_triangle as read_triangle,
        triangle_of as triangle_of,
        write_triangle as write_triangle,
    )
    from tauloop.identification.regression.from_log import (
        dynamic_parameters as dynamic_parameters,
        motion_regressor as motion_regressor,
        parameter_ties as parameter_ties,
        regression_data as regression_data,
    )
    from tauloop.identification.regression.streaming import (
        Condensed as Condensed,
        condense_parts as condense_parts,
        estimate_condensed as estimate_condensed,
        merge_data as merge_data,
        split_each as split_each,
    )
    from tauloop.identification.regression.ties import Ties as Ties, named_ties as named_ties
    from tauloop.identification.regrouping.formula_values import FormulaValue as FormulaValue
    from tauloop.identification.regrouping.regroup import (
        SymbolicBaseOptions as SymbolicBaseOptions,
        symbolic_base_parameters as symbolic_base_parameters,
    )
    from tauloop.identification.regrouping.regrouping import (
        AnalyticRegrouping as AnalyticRegrouping,
        analytic_regrouping as analytic_regrouping,
    )
    from tauloop.identification.regrouping.regrouping_columns import (
        ProductColumns as ProductColumns,
        SetColumns as SetColumns,
        StandardColumns as StandardColumns,
    )
    from tauloop.identification.workflow import (
        identification_model as identification_model,
        identify as identify,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
