"""Options of a plant: clock, communication channel, and behavior without commands."""

from __future__ import annotations

import ipaddress
import math
import re
import reprlib
import sys

from tauloop.common.errors import Problems
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.export.controller.options import rate_option
from tauloop.integrate.integrators import Integrator, Method
from tauloop.mechanism.description import units
from tauloop.simulation.controllers.workflow import METHODS

#: Reactions to a stall: the plant's time is held, or the missed steps are computed at once.
STALLS = ("hold", "catch-up")
_MEMORY_NAME = re.compile(r"(?=.*[A-Za-z0-9])[A-Za-z0-9_.-]{1,60}")
#: Longest default integration step, s. It equals the step of `tauloop control follow` at 1 kHz.
MAX_DEFAULT_STEP = 2.5e-4
#: Maximum number of integration steps per period; more would exceed any controller's timeout.
MAX_SUBSTEPS = 1_000_000


def is_memory_name(name: str) -> bool:
    """Return whether shared memory may have this name."""
    return _MEMORY_NAME.fullmatch(name) is not None


def memory_name_problem(name: str) -> tuple[str, str]:
    """Return the problem and the remedy of an invalid name of shared memory."""
    what = f"{reprlib.repr(name)} is not a valid name of shared memory ({len(name)} characters)"
    return what, "use 1 to 60 letters, digits, points, dashes and underscores, such as plant-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantOptions(Options):
    """Options of a plant for hardware in the loop.

    Attributes:
        rate: samples per second, such as 1kHz.
        udp: address and port of the plant, HOST:PORT.
        shm: name of shared memory, which replaces the address: up to 60 letters, digits, points,
            dashes and underscores.
        duration: duration of the run in the plant's time, such as 60s; its samples must fit into
            memory. By default the plant runs until it is interrupted, and records nothing.
        lockstep: compute one step per packet; the controller is the only clock.
        stall: reaction to a step that was more than a period late: hold the plant's time (hold), or
            compute the missed steps at once (catch-up).
        watchdog: number of periods without a command after which brakes hold; 0 for no watchdog.
        timeout: time after which a command counts as lost in lock-step, s.
        method: integrator between commands, as in `tauloop control follow`; default: rk4, or
            adaptive with drive lines, whose backlash causes events.
        substeps: integration steps per period for fixed steps; by default steps of at most 0.25 ms.
        without_controller: start without a controller, in real time and with the brakes applied, to measure how
            well this computer keeps time.
        remote: listen on an address that other computers can reach.

    Examples:
        >>> import tauloop as tl
        >>> tl.export.hil.PlantOptions(udp="0.0.0.0:9000")
        Traceback (most recent call last):
            ...
        tauloop.common.errors.InputError: udp: 0.0.0.0 can be reached from other computers
            remedy: use 127.0.0.1, or give --remote (remote=True)
    """

    rate: float = rate_option()
    udp: str = option("127.0.0.1:47800", metavar="HOST:PORT")
    shm: str | None = None
    duration: float | None = option(
        None, above=0.0, below=math.inf, metavar="TIME", unit=units.TIME
    )
    lockstep: bool = False
    stall: str = option("hold", choices=STALLS)
    watchdog: int = option(20, least=0)
    timeout: float = option(1.0, above=0.0, below=math.inf, metavar="TIME", unit=units.TIME)
    method: str | None = option(None, choices=tuple(METHODS))
    substeps: int | None = option(None, least=1, most=MAX_SUBSTEPS)
    without_controller: bool = False
    remote: bool = False

    def _note_mismatches(self, problems: Problems) -> None:
        """Report invalid or public addresses, and invalid names of shared memory."""
        host, _, port = self.udp.rpartition(":")
        try:
            address = ipaddress.IPv4Address(host)
            if not 1 <= int(port) <= 65535:
                raise ValueError(port)
        except ValueError:
            what = f"{self.udp!r} is not an address with a port"
            problems.add("udp", what, "give an address such as 127.0.0.1:47800")
        else:
            if not (address.is_loopback or self.remote or self.shm):
                what = f"{host} can be reached from other computers"
                problems.add("udp", what, "use 127.0.0.1, or give --remote (remote=True)")
        if self.without_controller and (self.lockstep or self.duration is None):
            what = "needs a duration and real time"
            problems.add("without_controller", what, "give a duration, and remove --lockstep")
        if self.shm is not None and not is_memory_name(self.shm):
            problems.add("shm", *memory_name_problem(self.shm))

    @property
    def period(self) -> float:
        """Duration of a step, s."""
        return 1.0 / self.rate

    @property
    def steps(self) -> int:
        """Total number of steps; 0 for a run without a duration."""
        if self.duration is None:
            return 0
        return max(round(min(self.duration * self.rate, sys.float_info.max)), 1)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port; or the name of shared memory, and 0."""
        if self.shm is not None:
            return f"/{self.shm}", 0
        host, _, port = self.udp.rpartition(":")
        return host, int(port)

    def integrator(self, *, has_lines: bool) -> Method:
        """Return the integrator of a plant with or without drive lines."""
        substeps = self.substeps or max(math.ceil(self.period / MAX_DEFAULT_STEP - 1e-9), 1)
        chosen = METHODS[self.method or ("adaptive" if has_lines else "rk4")]
        if isinstance(chosen, Integrator):
            return chosen.method
        return Method.fixed(chosen, self.period / substeps)
