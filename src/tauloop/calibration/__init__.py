"""Geometric calibration: estimates of a machine's geometry from measurements, with uncertainties.

Examples:
    >>> import tauloop as tl
    >>> tl.calibration.Position(name="tracker").columns
    (('x', 'm'), ('y', 'm'), ('z', 'm'))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.calibration.fitting import FitOptions as FitOptions, fit_geometry as fit_geometry
    from tauloop.calibration.judging.base_combinations import BaseCombination as BaseCombination
    from tauloop.calibration.judging.identifiability import (
        Identifiability as Identifiability,
        LeftOut as LeftOut,
        ParameterDirection as ParameterDirection,
        identifiability as identifiability,
    )
    from tauloop.calibration.judging.observability import (
        Observability as Observability,
        observability as observability,
    )
    from tauloop.calibration.judging.residual_analysis import (
        ResidualAnalysis as ResidualAnalysis,
        analyse_residuals as analyse_residuals,
    )
    from tauloop.calibration.judging.validation import (
        Bootstrap as Bootstrap,
        HeldOut as HeldOut,
        UnknownsComparison as UnknownsComparison,
        bootstrap as bootstrap,
        compare_unknowns as compare_unknowns,
        leave_one_out as leave_one_out,
    )
    from tauloop.calibration.measurements.instruments import (
        Between as Between,
        Contact as Contact,
        Distance as Distance,
        Frame as Frame,
        Inclinometer as Inclinometer,
        Instrument as Instrument,
        JointSensor as JointSensor,
        Nuisance as Nuisance,
        Orientation as Orientation,
        Pose as Pose,
        Position as Position,
        StepGauge as StepGauge,
    )
    from tauloop.calibration.measurements.measurement_set import MeasurementSet as MeasurementSet
    from tauloop.calibration.measurements.reading import (
        read_instrument as read_instrument,
        read_measurements as read_measurements,
    )
    from tauloop.calibration.measurements.series import Series as Series
    from tauloop.calibration.measurements.simulated import (
        simulated_readings as simulated_readings,
        simulated_series as simulated_series,
    )
    from tauloop.calibration.measurements.surfaces import (
        Cylinder as Cylinder,
        Plane as Plane,
        Sphere as Sphere,
    )
    from tauloop.calibration.pose_selection.candidates import (
        Candidates as Candidates,
        PoseLimits as PoseLimits,
        candidate_poses as candidate_poses,
    )
    from tauloop.calibration.pose_selection.plan import (
        PosePlan as PosePlan,
        PosePlanOptions as PosePlanOptions,
        plan_poses as plan_poses,
    )
    from tauloop.calibration.pose_selection.selection import (
        AOptimal as AOptimal,
        Criterion as Criterion,
        DOptimal as DOptimal,
        EOptimal as EOptimal,
        Selection as Selection,
        select_poses as select_poses,
    )
    from tauloop.calibration.problem.predicted import predicted_readings as predicted_readings
    from tauloop.calibration.problem.problem import (
        CalibrationProblem as CalibrationProblem,
        Evaluation as Evaluation,
        calibration_problem as calibration_problem,
        hanging_coordinates as hanging_coordinates,
    )
    from tauloop.calibration.problem.residuals import (
        ForwardKinematics as ForwardKinematics,
        LoopEquations as LoopEquations,
    )
    from tauloop.calibration.problem.unknowns import (
        PICKED_GROUPS as PICKED_GROUPS,
        Bounds as Bounds,
        Tolerances as Tolerances,
        Unknown as Unknown,
        select_unknowns as select_unknowns,
    )
    from tauloop.calibration.result import (
        Calibration as Calibration,
        EstimatedUnknown as EstimatedUnknown,
    )
    from tauloop.calibration.solving.align import (
        aligned as aligned,
        aligned_together as aligned_together,
    )
    from tauloop.calibration.solving.checks import measurement_problems as measurement_problems
    from tauloop.calibration.solving.exchanges import (
        Exchanges as Exchanges,
        indistinguishable_swaps as indistinguishable_swaps,
    )
    from tauloop.calibration.solving.losses import (
        Cauchy as Cauchy,
        Huber as Huber,
        Loss as Loss,
        Squares as Squares,
    )
    from tauloop.calibration.solving.solver import (
        Solution as Solution,
        solve_calibration as solve_calibration,
    )
    from tauloop.calibration.workflow import (
        CalibrationOptions as CalibrationOptions,
        calibrate as calibrate,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
