"""Options of a generated controller: law, sampling, and reactions to faults."""

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
    """Options of a generated controller. All numbers except the rate stay parameters of the code.

    Attributes:
        controller: law of the controller, as for `tauloop control follow`; drive is the control law
            of the machine's drive lines.
        space: coordinates of the errors: actuators or platform.
        bandwidth: bandwidth of the controller, the natural frequency of the errors, such as 100
            (rad/s) or '20 Hz'.
        damping: damping ratio of the controller.
        rate: samples per second, such as 1kHz.
        velocity_differences: compute velocities by finite differences of measured positions;
            velocities are then not an input.
        limit: largest force, for all or one per actuator (or motor of a drive line), N or N m;
            lower limits in the machine file take precedence.
        deceleration: deceleration of the actuators in a controlled stop, for all or one per
            actuator, m/s^2 or rad/s^2.
        hold_samples: number of samples for which the last good forces are held after a fault,
            before the stop.
        stuck: number of samples after which an encoder that does not change is stale, if it should
            move.
        stuck_motion: expected motion above which an unchanged encoder is stale, m or rad.
        max_lateness: largest delay of a sample, as a fraction of the period.
        max_pose_jump: largest distance of a coordinate from the value predicted from the last
            samples, m or rad; beyond it, the pose is lost.
        settling: time at rest after the stop, before the forces are zero and the brake is
            requested, s.

    Examples:
        >>> import tauloop as tl
        >>> tl.export.controller.ControllerOptions(rate=4000.0, deceleration=(20.0,)).hold_samples
        3
    """

    controller: str = option("computed-torque", choices=LAWS, metavar="LAW")
    space: str = option("joint", choices=SPACES)
    bandwidth: float = option(
        100.0, read=read_bandwidth, metavar="FREQUENCY", above=0.0, below=np.inf
    )
    damping: float = option(1.0, above=0.0, below=np.inf)
    rate: float = rate_option()
    velocity_differences: bool = False
    limit: tuple[float, ...] = option(
        (), above=0.0, below=np.inf, metavar="QUANTITIES", unit=units.FORCES
    )
    deceleration: tuple[float, ...] = option(
        (20.0,), above=0.0, below=np.inf, metavar="QUANTITIES", unit=units.ACCELERATIONS
    )
    hold_samples: int = option(3, least=0)
    stuck: int = option(10, least=1)
    stuck_motion: float = option(
        0.01, above=0.0, below=np.inf, metavar="QUANTITY", unit=units.POSITIONS
    )
    max_lateness: float = option(0.5, above=0.0, below=np.inf)
    max_pose_jump: float = option(
        0.05,
        above=0.0,
        below=np.inf,
        metavar="QUANTITY",
        unit=units.POSITIONS,
    )
    settling: float = option(0.1, least=0.0, below=np.inf, metavar="TIME", unit=units.TIME)

    @property
    def period(self) -> float:
        """Return the sampling period, s."""
        return 1.0 / self.rate

    def _note_mismatches(self, problems: Problems) -> None:
        """Report platform space for the control of drive lines, and a missing deceleration."""
        if self.controller == "drive" and self.space != "joint":
            problems.add("space", "each drive line is controlled at its joint", "leave it out")
        if len(self.deceleration) == 0:
            problems.add("deceleration", "is missing", "give one number, or one per actuator")
