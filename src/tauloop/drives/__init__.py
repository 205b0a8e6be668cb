"""Drive lines between motor and machine: models with backlash and friction, control of one motor or two, criteria."""

from tauloop.drives.axis.sensitivity import SensitiveAxis
from tauloop.drives.axis.simulation import LINE_INTEGRATOR, Axis, Record, record_axis, simulate_axis
from tauloop.drives.axis.workflow import DriveOptions, DriveStep, drive
from tauloop.drives.criteria import Criteria, Outcome, weighted_sum, weighted_worst
from tauloop.drives.machine.circle import CircleTest
from tauloop.drives.machine.play import PlayMap
from tauloop.drives.machine.workflow import BallbarOptions, PlayOptions, ballbar, play, play_section
from tauloop.drives.plant_fit import FittedPlant, PlantFitOptions, fit_plant, load_steps
from tauloop.drives.plant_search import DETERMINED, Observation, PlantFit, PlantUnknown, assess_plant, search_plant
from tauloop.drives.reader import load_drive, read_drive, shipped_drives
from tauloop.drives.tuning.evaluations import BatchCost
from tauloop.drives.tuning.grid import Grid, dense_grid
from tauloop.drives.tuning.methods import SQP, Genetic, Gradient, NelderMead, PatternSearch, SearchMethod
from tauloop.drives.tuning.pareto import ParetoFront, Robustness, pareto_front, robustness
from tauloop.drives.tuning.search import Minimum, minimise
from tauloop.drives.tuning.tune import Tuning, TuningOptions, tune
from tauloop.mechanism.drive_line import DriveLine

__all__ = [
    "DETERMINED",
    "LINE_INTEGRATOR",
    "SQP",
    "Axis",
    "BallbarOptions",
    "BatchCost",
    "CircleTest",
    "Criteria",
    "DriveLine",
    "DriveOptions",
    "DriveStep",
    "FittedPlant",
    "Genetic",
    "Gradient",
    "Grid",
    "Minimum",
    "NelderMead",
    "Observation",
    "Outcome",
    "ParetoFront",
    "PatternSearch",
    "PlantFit",
    "PlantFitOptions",
    "PlantUnknown",
    "PlayMap",
    "PlayOptions",
    "Record",
    "Robustness",
    "SearchMethod",
    "SensitiveAxis",
    "Tuning",
    "TuningOptions",
    "assess_plant",
    "ballbar",
    "dense_grid",
    "drive",
    "fit_plant",
    "load_drive",
    "load_steps",
    "minimise",
    "pareto_front",
    "play",
    "play_section",
    "read_drive",
    "record_axis",
    "robustness",
    "search_plant",
    "shipped_drives",
    "simulate_axis",
    "tune",
    "weighted_sum",
    "weighted_worst",
]
__dir__ = __all__.copy
