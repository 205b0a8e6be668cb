"""Export of machines as FMUs, and co-simulation with third-party FMUs.

Examples:
    >>> import tauloop as tl
    >>> tl.export.fmu.FmuOptions().fmi_version
    '3'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.export.fmu.coupling import FmuCoupling as FmuCoupling
    from tauloop.export.fmu.export import (
        FmuExport as FmuExport,
        FmuOptions as FmuOptions,
        export_fmu as export_fmu,
    )
    from tauloop.export.fmu.master import co_simulate as co_simulate
    from tauloop.export.fmu.variables import (
        FmuVariable as FmuVariable,
        FmuVariables as FmuVariables,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
