"""The result of a simulation of an elastic machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.datasets import OVER_TIME, channels, quantity_over
from tauloop.common.errors import InputError, Problems
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Result
from tauloop.elasticity.static_analysis.stiffness import DIRECTIONS, TWIST_UNITS
from tauloop.elasticity.vibrations.machine_modes import read_bandwidth
from tauloop.logs.log import log_of
from tauloop.mechanism.description import units
from tauloop.model import Model
from tauloop.simulation.elastic.controlled import FEEDFORWARDS
from tauloop.simulation.forces import Wrench

if TYPE_CHECKING:
    import xarray as xr

#: Motors follow the motion exactly (locked), or are moved by their position loops (servo).
MOTOR_STATES = ("locked", "servo")


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticSimulationOptions(Options):
    """Loads, damping and accuracy of the simulation of an elastic machine.

    Attributes:
        duration: duration, s; by default that of the motion, and ten periods of the lowest mode.
        wrench: wrench at the tool, such as 'fx=10,mz=0.5' (N, N m, base frame). Python accepts a
            function of time too.
        release: wrench at the tool that is removed at the start; the machine starts in static
            equilibrium with it.
        pose: position of the platform of a machine that does not move; default: the reference pose.
        damping: damping ratio of all modes; default: that of the machine file, or none.
        settling_band: distance of the tool from its final rest position below which it has settled.
        link_modes: modes of each link and bending plane; default: as in `vibration`.
        shear: include shear and rotary inertia of beams (Timoshenko).
        motor_state: locked: motors follow the motion exactly; servo: position loops move them.
        servo_gains, bandwidth: gains of the position loops, as in `vibration`; by default those of
            drive lines in the file.
        feedforward: feed-forward of the position loops: none; speed: the speed of the reference; or
            force: also the force that the undeformed machine needs, without the wrench.
        tolerance: largest error of the tool's deflection due to the time steps, relative to the
            largest change of the deflection.

    Examples:
        >>> import tauloop as tl
        >>> tl.ElasticSimulationOptions(duration="0.5 s", release={"fx": 100.0}).duration
        0.5
    """

    duration: float | None = option(None, above=0.0, metavar="TIME", unit=units.TIME)
    wrench: str | Mapping[str, str | float] | tuple[str | float, ...] | Wrench | None = option(
        None, read=str, metavar="VALUES"
    )
    release: str | Mapping[str, str | float] | tuple[str | float, ...] | None = option(
        None, read=str, metavar="VALUES"
    )
    pose: str | Mapping[str, str | float] | tuple[str | float, ...] | None = option(
        None, read=str, metavar="VALUES"
    )
    damping: float | None = option(None, above=0)
    settling_band: float | None = option(None, above=0.0, unit=units.LENGTH)
    link_modes: int | None = option(None, least=0)
    shear: bool = option(False)
    motor_state: str = option("locked", choices=MOTOR_STATES)
    servo_gains: str | Mapping[str, str | float | Mapping[str, str | float]] | None = option(
        None, read=str, metavar="NAME=VALUE"
    )
    bandwidth: float | None = option(
        None, read=read_bandwidth, metavar="FREQUENCY", above=0.0, below=np.inf
    )
    feedforward: str = option("speed", choices=FEEDFORWARDS)
    tolerance: float = option(1e-3, above=0.0, below=1.0)

    def _note_mismatches(self, problems: Problems) -> None:
        """Report a feed-forward for locked motors."""
        if self.feedforward != "speed" and self.motor_state != "servo":
            problems.add(
                "feedforward",
                "has no effect on locked motors",
                "set `motor_state` to servo, or omit `feedforward`",
            )


def _last(time: np.ndarray) -> float:
    return float(time[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticSimulation(Result):
    """The elastic motion of a machine whose motors follow a motion, at N equidistant times.

    Attributes:
        model: the machine.
        options: loads, damping and accuracy.
        time: (N,), s.
        motion_end: end of the prescribed motion, s; zero without one.
        tool: (N, 3) tool center point of the undeformed machine, m.
        deflection: (N, 6) twist of the tool due to the deformation of the machine, base axes, m and
            rad.
        rest: (6,) static deflection due to weight and wrench at the end.
        beams: names of the b beams.
        axial: (N, b) mean axial forces of the beams, N; tension is positive.
        drives: names of the d actuators whose drive is elastic.
        drive_force: (N, d) forces of these drives, N or N m.
        motors: names of the u controlled motors; empty if motors are locked.
        motor_force: (N, u) their forces, N or N m.
        following_error: (N, u) reference minus position at their encoders, m or rad.
        kinetic, elastic: (N,) energies of the elastic motion, J.
        work: (N,) work of motors, weight and wrench on the elastic motion, J.
        loss: (N,) energy that damping has dissipated, J.
        frequency: (k,) lowest natural frequencies at the start, Hz.
        link_modes: modes of each elastic link: one number for each bending plane.
        poses: number of poses at which the structure was assembled.
        rigid: names of the parts that are assumed to be rigid.
        notes: assumptions about this simulation.
    """

    model: Model = field(metadata=json_keys(machine="mechanism.name"))
    options: ElasticSimulationOptions = field(metadata=OMITTED)
    time: np.ndarray = field(metadata=json_keys("duration_s", summary=_last) | OVER_TIME)
    motion_end: float = field(metadata=json_keys("motion_end_s"))
    tool: np.ndarray = field(metadata=OMITTED | channels("time", names=DIRECTIONS[:3], unit="m"))
    deflection: np.ndarray = field(
        metadata=OMITTED | channels("time", names=DIRECTIONS, units=TWIST_UNITS)
    )
    rest: np.ndarray = field(metadata=json_keys("rest_deflection"))
    beams: tuple[str, ...]
    axial: np.ndarray = field(metadata=OMITTED | channels("time", names="beams", unit="N"))
    drives: tuple[str, ...]
    drive_force: np.ndarray = field(
        metadata=OMITTED | channels("time", names="drives", units="drive_units", name="drive")
    )
    motors: tuple[str, ...]
    motor_force: np.ndarray = field(
        metadata=OMITTED | channels("time", names="motors", units="motor_units", name="motor")
    )
    following_error: np.ndarray = field(
        metadata=OMITTED | channels("time", names="motors", units="position_units")
    )
    kinetic: np.ndarray = field(
        metadata=OMITTED | quantity_over("time", name="energy.kinetic", unit="J")
    )
    elastic: np.ndarray = field(
        metadata=OMITTED | quantity_over("time", name="energy.elastic", unit="J")
    )
    work: np.ndarray = field(metadata=OMITTED | quantity_over("time", name="energy.work", unit="J"))
    loss: np.ndarray = field(metadata=OMITTED | quantity_over("time", name="energy.loss", unit="J"))
    frequency: np.ndarray = field(metadata=json_keys("frequency_Hz"))
    link_modes: dict[str, tuple[int, int]]
    poses: int
    rigid: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    @in_json()
    def steps(self) -> int:
        """Number of time steps."""
        return len(self.time) - 1

    @property
    def deviation(self) -> np.ndarray:
        """Distance (N,) of the tool from its rest position under weight and wrench, m."""
        return np.asarray(np.linalg.norm(self.deflection[:, :3] - self.rest[:3], axis=1))

    @property
    @in_json("largest_deflection_m")
    def largest_deflection(self) -> float:
        """Largest distance by which the deformation moves the tool, m."""
        return float(np.linalg.norm(self.deflection[:, :3], axis=1).max())

    @property
    @in_json("largest_residual_vibration_m")
    def residual_vibration(self) -> float:
        """Largest deviation of the tool from its rest position after the motion, m."""
        return float(self.deviation[self.time >= self.motion_end].max(initial=0.0))

    @property
    def largest_following_error(self) -> dict[str, float]:
        """Largest following error of each controlled motor, m or rad, by name."""
        largest = np.abs(self.following_error).max(axis=0, initial=0.0)
        return dict(zip(self.motors, largest.tolist(), strict=True))

    @property
    @in_json(nullable=True)
    def settling_time(self) -> float | None:
        """Time from the end of the motion until the tool stays in the settling band, s.

        None without a band, or if the tool has not settled at the end of the simulation.
        """
        band = self.options.settling_band
        return None if band is None else self.settling(band)

    def settling(self, band: float) -> float | None:
        """Return the time from the end of the motion until the tool stays within a distance, s.

        Args:
            band: distance from the rest position, m.

        Returns:
            The time; None if the tool is outside the band at the last time.

        Raises:
            InputError: the band is not positive.
        """
        if not band > 0.0:
            raise InputError.of(
                "band", f"must be positive, got {band:g} m", "give a positive distance"
            )
        outside = np.flatnonzero((self.deviation > band) & (self.time >= self.motion_end))
        if not len(outside):
            return 0.0
        last = int(outside[-1])
        if last == len(self.time) - 1:
            return None
        return float(self.time[last + 1] - self.motion_end)

    @property
    def energy_error(self) -> np.ndarray:
        """Error of the balance of kinetic and elastic energy, work and loss (N,), J."""
        balance = self.kinetic + self.elastic - self.work + self.loss
        return np.asarray(balance - balance[0])

    @property
    def drive_units(self) -> tuple[str, ...]:
        """Units of the forces of the elastic drives, N or N m."""
        return self._force_units(self.drives)

    @property
    def motor_units(self) -> tuple[str, ...]:
        """Units of the forces of the controlled motors, N or N m."""
        return self._force_units(self.motors)

    @property
    def position_units(self) -> tuple[str, ...]:
        """Units of the positions of the controlled motors, m or rad."""
        return tuple("m" if unit == "N" else "rad" for unit in self.motor_units)

    def _force_units(self, actuators: Sequence[str]) -> tuple[str, ...]:
        port = self.model.force_port
        units_of = dict(zip(port.columns, port.units, strict=True))
        return tuple(units_of.get(name, "") for name in actuators)

    def log(self) -> xr.Dataset:
        """Return the tool's motion, forces and energies as a table over time."""
        names = ("motor", "following_error") if self.motors else ()
        return log_of(self, "tool", "deflection", "axial", "drive", *names, "energy")
