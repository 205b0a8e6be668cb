"""What a generated controller is: its law, its samples, and what it does when something is wrong."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import Problems
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.mechanism.description import units
from tauloop.simulation.controllers.laws import SPACES, read_bandwidth

#: Laws of a generated controller: those of `tauloop control`, and the control of the drive lines.
LAWS = ("computed-torque", "feed-forward", "gravity", "pd", "drive")


def rate_option() -> float:
    """Return a field for the samples per second, from 0.001 Hz to 1 MHz; `--rate 4kHz`."""
    field: float = option(1000.0, flag="--rate", least=1e-3, most=1e6, unit=units.FREQUENCY)
    return field


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions(Options):
    """A generated controller. All numbers but the rate stay parameters of the code.

    Attributes:
        law: law of the controller, as of `tauloop control follow`; drive is the control of the
            machine's drive lines.
        space: where errors are taken: of the actuators, or of the platform.
        bandwidth: bandwidth of the controller, the natural frequency of the errors, such as 100
            (rad/s) or '20 Hz'.
        damping: damping ratio of the controller.
        frequency: samples per second, such as 1kHz.
        differences: take speeds as differences of measured positions; they are not an input.
        limit: largest forces, one for all or one per actuator (or motor of a drive line); those of
            the machine's file where they are less.
        deceleration: of the actuators in a controlled stop, one for all or one each, m/s^2 or
            rad/s^2.
        hold: samples for which the last good forces are held when something is wrong, before the
            stop.
        stuck: samples after which an encoder that does not change is stale, if it should move.
        stuck_motion: how far it should have moved by then, m or rad.
        late: share of the period by which a sample may be late.
        astray: how far a coordinate may be from where the last samples led, m or rad: farther, the
            pose is lost.
        settling: time at rest after the stop, before forces are zero and the brake is asked for, s.

    Examples:
        >>> import tauloop as tl
        >>> tl.export.controller.ControllerOptions(frequency=4000.0, deceleration=(20.0,)).hold
        3
    """

    law: str = option("computed-torque", choices=LAWS, flag="--controller", metavar="LAW")
    space: str = option("joint", choices=SPACES)
    bandwidth: float = option(
        100.0, read=read_bandwidth, metavar="FREQUENCY", above=0.0, below=np.inf
    )
    damping: float = option(1.0, above=0.0, below=np.inf)
    frequency: float = rate_option()
    differences: bool = False
    limit: tuple[float, ...] = option(
        (), above=0.0, below=np.inf, metavar="QUANTITIES", unit=units.FORCES
    )
    deceleration: tuple[float, ...] = option(
        (20.0,), above=0.0, below=np.inf, metavar="QUANTITIES", unit=units.ACCELERATIONS
    )
    hold: int = option(3, least=0, flag="--hold-samples")
    stuck: int = option(10, least=1)
    stuck_motion: float = option(
        0.01, above=0.0, below=np.inf, metavar="QUANTITY", unit=units.POSITIONS
    )
    late: float = option(0.5, above=0.0, below=np.inf)
    astray: float = option(
        0.05,
        above=0.0,
        below=np.inf,
        flag="--max-pose-jump",
        metavar="QUANTITY",
        unit=units.POSITIONS,
    )
    settling: float = option(0.1, least=0.0, below=np.inf, metavar="TIME", unit=units.TIME)

    @property
    def period(self) -> float:
        """Time between two samples, s."""
        return 1.0 / self.frequency

    def _note_mismatches(self, problems: Problems) -> None:
        """Note a space for the control of drive lines, and no deceleration."""
        if self.law == "drive" and self.space != "joint":
            problems.add("space", "drive lines are controlled each by itself", "leave it out")
        if len(self.deceleration) == 0:
            problems.add("deceleration", "is missing", "one number, or one per actuator")
