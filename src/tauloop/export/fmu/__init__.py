"""Machines behind the Functional Mock-up Interface.

Examples:
    >>> import tauloop as tl
    >>> tl.export.fmu.FmuOptions().version
    '3'
"""

from tauloop.common.lazy import public_names
from tauloop.export.fmu.coupling import FmuCoupling as FmuCoupling
from tauloop.export.fmu.export import (
    FmuExport as FmuExport,
    FmuOptions as FmuOptions,
    export_fmu as export_fmu,
)
from tauloop.export.fmu.master import co_simulate as co_simulate
from tauloop.export.fmu.variables import FmuVariable as FmuVariable, FmuVariables as FmuVariables

__dir__, __all__ = public_names(__name__)
