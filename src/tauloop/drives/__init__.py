"""Drive lines between motors and machine: backlash, friction, and control of one or two motors.

Examples:
    >>> import tauloop as tl
    >>> tl.drives.shipped_drives()
    ('dual_motor_axis', 'dual_motor_inferred', 'single_motor_axis')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.drives.axis.sensitivity import SensitiveAxis as SensitiveAxis
    from tauloop.drives.axis.simulation import (
        LINE_INTEGRATOR as LINE_INTEGRATOR,
        Axis as Axis,
        Record as Record,
        record_axis as record_axis,
        simulate_axis as simulate_axis,
    )
    from tauloop.drives.axis.workflow import (
        DriveOptions as DriveOptions,
        DriveStep as DriveStep,
        simulate_drive_line as simulate_drive_line,
    )
    from tauloop.drives.criteria import (
        Criteria as Criteria,
        Outcome as Outcome,
        scaled_sum as scaled_sum,
        scaled_worst as scaled_worst,
    )
    from tauloop.drives.machine.circle import CircleTest as CircleTest
    from tauloop.drives.machine.play import PlayMap as PlayMap
    from tauloop.drives.machine.workflow import (
        BacklashOptions as BacklashOptions,
        BallbarOptions as BallbarOptions,
        backlash_map as backlash_map,
        ballbar as ballbar,
        play_section as play_section,
    )
    from tauloop.drives.plant_fit import (
        DriveLineFitOptions as DriveLineFitOptions,
        FittedPlant as FittedPlant,
        fit_drive_line as fit_drive_line,
        load_steps as load_steps,
    )
    from tauloop.drives.plant_search import (
        DETERMINED as DETERMINED,
        Observation as Observation,
        PlantFit as PlantFit,
        PlantUnknown as PlantUnknown,
        assess_plant as assess_plant,
        search_plant as search_plant,
    )
    from tauloop.drives.reader import (
        load_drive as load_drive,
        read_drive as read_drive,
        shipped_drives as shipped_drives,
    )
    from tauloop.drives.tuning.evaluations import BatchCost as BatchCost
    from tauloop.drives.tuning.grid import Grid as Grid, dense_grid as dense_grid
    from tauloop.drives.tuning.methods import (
        SQP as SQP,
        Genetic as Genetic,
        Gradient as Gradient,
        NelderMead as NelderMead,
        PatternSearch as PatternSearch,
        SearchMethod as SearchMethod,
    )
    from tauloop.drives.tuning.pareto import (
        ParetoFront as ParetoFront,
        Robustness as Robustness,
        pareto_front as pareto_front,
        robustness as robustness,
    )
    from tauloop.drives.tuning.search import Minimum as Minimum, minimize as minimize
    from tauloop.drives.tuning.tune import (
        Tuning as Tuning,
        TuningOptions as TuningOptions,
        tune_drive_line as tune_drive_line,
    )
    from tauloop.mechanism.drive_line import DriveLine as DriveLine
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
