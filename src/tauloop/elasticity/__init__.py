"""Elastic analysis of machines: stiffness, stress, buckling, vibration and thermal expansion.

The elastic data come from the machine file. Beams, joints and drives with such data form a
`Structure` in minimal coordinates. This package must not import applications such as simulation,
identification and calibration.

Examples:
    >>> import tauloop as tl
    >>> tl.stiffness("delta")
    Traceback (most recent call last):
        ...
    tauloop.common.errors.InputError: machine: no rod, body, joint or actuator has elastic data: ...
    ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.elasticity.compensation.compensate import (
        CompensatedPoses as CompensatedPoses,
        CompensationOptions as CompensationOptions,
        compensate as compensate,
    )
    from tauloop.elasticity.compensation.lookup_table import (
        CompensationTable as CompensationTable,
        CompensationTableOptions as CompensationTableOptions,
        compensation_table as compensation_table,
    )
    from tauloop.elasticity.heat.expansion import (
        ThermalExpansion as ThermalExpansion,
        ThermalExpansionOptions as ThermalExpansionOptions,
        thermal_expansion as thermal_expansion,
    )
    from tauloop.elasticity.static_analysis.batch_compliance import (
        compliance_matrices as compliance_matrices,
    )
    from tauloop.elasticity.static_analysis.gradients import ElasticGradient as ElasticGradient
    from tauloop.elasticity.static_analysis.maps import (
        ELASTIC_QUANTITIES as ELASTIC_QUANTITIES,
        ElasticMapOptions as ElasticMapOptions,
        elastic_map as elastic_map,
    )
    from tauloop.elasticity.static_analysis.rated_loads import (
        StaticCompliance as StaticCompliance,
        StaticComplianceOptions as StaticComplianceOptions,
        static_compliance as static_compliance,
    )
    from tauloop.elasticity.static_analysis.stiffness import (
        Stiffness as Stiffness,
        StiffnessOptions as StiffnessOptions,
        stiffness as stiffness,
    )
    from tauloop.elasticity.vibrations.vibration import (
        Vibration as Vibration,
        VibrationOptions as VibrationOptions,
        vibration as vibration,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
