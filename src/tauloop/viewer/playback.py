"""Motions to play, from the files of planning, dynamics, simulation and control."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.errors import InputError, Problem
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.ports import PLATFORM, Entry, Port
from tauloop.logs import samples
from tauloop.logs.log import TIME, channels
from tauloop.logs.matching import channel_problems
from tauloop.logs.recording import read_recorded
from tauloop.model import Model

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, slots=True, kw_only=True)
class Playback(ReprMixin):
    """The motion of a machine: its coordinates at N times.

    Attributes:
        time: times, s (N,), from zero.
        q: coordinates (N, n_q).
        source: name of the file.
        entry: whether the file contains positions of the platform or of the actuators.
        rates: velocities and accelerations of the platform or the actuators, (N, n) each; None if
            the file does not have both.
        force: forces of the actuators (N, n_u); None if the file has no forces.
    """

    time: np.ndarray
    q: np.ndarray
    source: str = ""
    entry: Entry = PLATFORM
    rates: tuple[np.ndarray, np.ndarray] | None = None
    force: np.ndarray | None = None

    @property
    def duration(self) -> float:
        """Return the length of the motion, s."""
        return float(self.time[-1])

    def sample(self, time: float) -> int:
        """Return the index of the sample nearest to a time, s."""
        after = int(np.clip(np.searchsorted(self.time, time), 1, max(len(self.time) - 1, 1)))
        after = min(after, len(self.time) - 1)
        before = max(after - 1, 0)
        return before if time - self.time[before] <= self.time[after] - time else after


def read_playback(model: Model, path: str | Path) -> Playback:
    """Read a log with time and position.NAME of the platform or the actuators.

    The coordinates of the machine are tracked along these positions. The file is a table, a ROS
    bag, or a YAML file that describes one of them (`tauloop.logs.load_recording`). If the log has
    positions of both, those of the platform are used.

    Returns:
        Times and coordinates of the log, with velocities, accelerations and forces if it has them.

    Raises:
        LogError: the file is damaged.
        InputError: the log contains neither all positions of the platform nor all positions of the
            actuators, or their units are wrong.
        PoseError: a sample is out of reach; the message states the loop that does not close, and by
            how much.
        AssemblyError: the motion jumps.
    """
    log = read_recorded(path)
    time = log[TIME].to_numpy()
    missing: dict[Entry, list[Problem]] = {}
    for functions in (model.platform, model.actuators):
        port = functions.ports.position
        required = {"position": dict(zip(port.columns, port.units, strict=True))}
        missing[functions.ports.entry] = channel_problems(log, required, str(path))
        if not missing[functions.ports.entry]:
            q = functions.track(samples(log, "position", port.columns)).q
            ports = functions.ports
            velocity = _columns(log, ports.motion["velocity"])
            acceleration = _columns(log, ports.motion["acceleration"])
            rates = None
            if velocity is not None and acceleration is not None:
                rates = (velocity, acceleration)
            names = tuple(actuator.name for actuator in model.mechanism.actuators)
            return Playback(
                time=time - time[0],
                q=q,
                source=Path(path).name,
                entry=ports.entry,
                rates=rates,
                force=_columns(
                    log, Port(name="force", columns=names, units=model.output_ports("actuators")[1])
                ),
            )
    fewest_problems = min(missing.values(), key=len)
    if not channels(log, "position"):
        remedy = "give a table such as from `tauloop plan stroke --out` or `tauloop simulate --out`"
        fewest_problems = [
            Problem(
                where="position", what="the log has no positions", remedy=remedy, file=str(path)
            )
        ]
    raise InputError(fewest_problems)


def _columns(log: xr.Dataset, port: Port) -> np.ndarray | None:
    """Return the samples (N, n) of a port, or None if the log lacks a column."""
    missing = channel_problems(
        log, {port.name: dict(zip(port.columns, port.units, strict=True))}, ""
    )
    return None if missing or not port.columns else samples(log, port.name, port.columns)
