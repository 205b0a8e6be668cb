"""Drive lines between motor and machine: models with backlash and friction, control of one motor or two, criteria."""

from tauloop.drives.criteria import Criteria, Outcome, weighted_sum, weighted_worst
from tauloop.drives.reader import load_drive, read_drive, shipped_drives
from tauloop.drives.simulation import Axis, Record, Stepping, record_axis, simulate_axis
from tauloop.mechanism.drive_line import DriveLine

__all__ = [
    "Axis",
    "Criteria",
    "DriveLine",
    "Outcome",
    "Record",
    "Stepping",
    "load_drive",
    "read_drive",
    "record_axis",
    "shipped_drives",
    "simulate_axis",
    "weighted_sum",
    "weighted_worst",
]
__dir__ = __all__.copy
