"""Hardware in the loop: a simulated plant for a controller in another process.

The plant runs in lock-step with the controller or in real time.

Examples:
    >>> import tauloop as tl
    >>> tl.export.hil.PlantOptions(udp="127.0.0.1:9000", lockstep=True).rate
    1000.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.export.hil.client import (
        PlantClient as PlantClient,
        PlantMeasurement as PlantMeasurement,
        PlantObserver as PlantObserver,
    )
    from tauloop.export.hil.options import PlantOptions as PlantOptions
    from tauloop.export.hil.plant import CompiledPlant as CompiledPlant
    from tauloop.export.hil.run import PlantRun as PlantRun, run_plant as run_plant
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
