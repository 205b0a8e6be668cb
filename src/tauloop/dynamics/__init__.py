"""Inverse and forward dynamics of a machine from one call.

No application is imported here: simulation, identification and calibration use this package.

Examples:
    >>> import tauloop as tl
    >>> forces = tl.dynamics.inverse_dynamics(tl.load("delta"))
    >>> forces.forces.force.shape
    (1, 3)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.dynamics.actuator_maps.actuator_map import ActuatorMap as ActuatorMap
    from tauloop.dynamics.actuator_maps.carried_limits import CarriedLimits as CarriedLimits
    from tauloop.dynamics.actuator_maps.mapped_states import (
        MappedStates as MappedStates,
        MapStatus as MapStatus,
    )
    from tauloop.dynamics.joint_forces import JointForces as JointForces
    from tauloop.dynamics.load_cases import (
        JointForce as JointForce,
        LoadCase as LoadCase,
        LoadCases as LoadCases,
    )
    from tauloop.dynamics.machine_dynamics import (
        DynamicsOptions as DynamicsOptions,
        MotionAccelerations as MotionAccelerations,
        MotionForces as MotionForces,
        forward_dynamics as forward_dynamics,
        inverse_dynamics as inverse_dynamics,
    )
    from tauloop.dynamics.motor_catalogue import (
        GearEntry as GearEntry,
        MotorCatalogue as MotorCatalogue,
        MotorEntry as MotorEntry,
        load_motors as load_motors,
    )
    from tauloop.dynamics.motor_loads import ActuatorLoad as ActuatorLoad
    from tauloop.dynamics.motor_sizing import (
        MotorCandidate as MotorCandidate,
        MotorSizing as MotorSizing,
        MotorSizingOptions as MotorSizingOptions,
        size_motors as size_motors,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
