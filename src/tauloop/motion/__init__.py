"""Motions: paths, motion laws and durations as trajectories; excitation with exact derivatives.

Examples:
    >>> import tauloop as tl
    >>> sorted(tl.motion.LAWS)
    ['3-4-5', '4-5-6-7', 'cycloidal', 'parabolic', 'trapezoidal']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.motion.cycles.planning import (
        CycleLeg as CycleLeg,
        PlannedCycle as PlannedCycle,
        cycle_trajectory as cycle_trajectory,
    )
    from tauloop.motion.cycles.stations import (
        CycleList as CycleList,
        CycleStation as CycleStation,
        load_cycle as load_cycle,
        loads_cycle as loads_cycle,
    )
    from tauloop.motion.excitation.fourier import FourierSeries as FourierSeries
    from tauloop.motion.excitation.multisine import (
        Multisine as Multisine,
        random_multisine as random_multisine,
    )
    from tauloop.motion.fastest.changes import limited_law as limited_law
    from tauloop.motion.fastest.law import ProfileLaw as ProfileLaw
    from tauloop.motion.fastest.limits import PathLimits as PathLimits, PathRows as PathRows
    from tauloop.motion.fastest.planning import (
        FastestLaw as FastestLaw,
        fastest_law as fastest_law,
        law_rate as law_rate,
    )
    from tauloop.motion.free.obstacles import (
        BoxObstacle as BoxObstacle,
        Obstacle as Obstacle,
        SphereObstacle as SphereObstacle,
    )
    from tauloop.motion.free.planning import (
        FreeMotion as FreeMotion,
        FreePlanner as FreePlanner,
        Objective as Objective,
    )
    from tauloop.motion.free.rows import Surroundings as Surroundings
    from tauloop.motion.laws import (
        LAWS as LAWS,
        POLYNOMIAL_345 as POLYNOMIAL_345,
        POLYNOMIAL_4567 as POLYNOMIAL_4567,
        Cycloidal as Cycloidal,
        Law as Law,
        LawSample as LawSample,
        Parabolic as Parabolic,
        PolynomialLaw as PolynomialLaw,
        Trapezoidal as Trapezoidal,
    )
    from tauloop.motion.paths.clothoids import (
        Chain as Chain,
        Clothoid as Clothoid,
        polyline as polyline,
    )
    from tauloop.motion.paths.curves import (
        AxisTurn as AxisTurn,
        CombinedPath as CombinedPath,
        Curve as Curve,
        Ellipse as Ellipse,
        Line as Line,
        Path as Path,
        SampledPath as SampledPath,
        sheared_ellipse as sheared_ellipse,
        turn_between as turn_between,
    )
    from tauloop.motion.planning import (
        PlannedMotion as PlannedMotion,
        StrokeOptions as StrokeOptions,
        plan_stroke as plan_stroke,
    )
    from tauloop.motion.rate_limits.stroke_limits import (
        fastest_rate as fastest_rate,
        tightest_limit as tightest_limit,
    )
    from tauloop.motion.sampled import SampledMotion as SampledMotion
    from tauloop.motion.strokes.stroke import Stroke as Stroke, stroke as stroke
    from tauloop.motion.timing import (
        MachineLimits as MachineLimits,
        PeakAcceleration as PeakAcceleration,
        PeakSpeed as PeakSpeed,
        Seconds as Seconds,
        Timing as Timing,
        peak as peak,
    )
    from tauloop.motion.trajectory import (
        PeakForce as PeakForce,
        Trajectory as Trajectory,
        plan as plan,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
