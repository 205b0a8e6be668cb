"""How a plant runs: its clock, its link, and what it does when commands stay away."""

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

#: What is done after a stall: the plant's time stands still meanwhile, or the steps are made up for
#: at once.
STALLS = ("hold", "catch-up")
#: Names of shared memory.
_NAMES = re.compile(r"(?=.*[A-Za-z0-9])[A-Za-z0-9_.-]{1,60}")
#: Longest step of fixed ones where nothing says how many a period has, s: that of `tauloop control`
#: at 1 kHz.
LONGEST = 2.5e-4
#: Steps of a period; more take longer than any controller waits.
MOST_SUBSTEPS = 1_000_000


def is_memory_name(name: str) -> bool:
    """Return whether shared memory may have this name."""
    return _NAMES.fullmatch(name) is not None


def memory_name_problem(name: str) -> tuple[str, str]:
    """Return what is wrong with a name of shared memory, and what to do."""
    what = f"{reprlib.repr(name)} is not a name of shared memory ({len(name)} characters)"
    return what, "give 1 to 60 letters, digits, points, dashes and underscores, such as plant-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantOptions(Options):
    """A plant for hardware in the loop.

    Attributes:
        frequency: samples per second, such as 1kHz.
        udp: address and port where it listens, HOST:PORT.
        shm: name of shared memory in place of it: up to 60 letters, digits, points, dashes and
            underscores.
        duration: duration of the run in the plant's time, such as 60s, whose samples must fit into
            memory; without it the plant runs until it is interrupted, and records nothing.
        lockstep: one step a packet: no clock but the controller's.
        stall: after a step that came more than a period late: the plant's time stands (hold), or it
            catches up.
        watchdog: periods without a command after which brakes hold; never at 0.
        timeout: of lock-step: after so long a command counts as lost, s.
        method: integrator between commands, as of `tauloop control follow`; rk4 where none is
            named, and adaptive with drive lines, whose play has events.
        substeps: integration steps per period, where they are fixed; as many as make none longer
            than 0.25 ms without it.
        alone: begin without a controller, in real time, with brakes that hold: how well this
            computer keeps time.
        remote: listen on an address that is not this computer's own.

    Examples:
        >>> import tauloop as tl
        >>> tl.hil.PlantOptions(udp="0.0.0.0:9000")
        Traceback (most recent call last):
            ...
        tauloop.common.errors.InputError: udp: 0.0.0.0 can be reached from outside of this computer
            remedy: take 127.0.0.1, or say --remote (remote=True)
    """

    frequency: float = rate_option()
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
    substeps: int | None = option(None, least=1, most=MOST_SUBSTEPS)
    alone: bool = False
    remote: bool = False

    def _note_mismatches(self, problems: Problems) -> None:
        """Note addresses that are none, or that others reach, and names that are none."""
        host, _, port = self.udp.rpartition(":")
        try:
            address = ipaddress.IPv4Address(host)
            if not 1 <= int(port) <= 65535:
                raise ValueError(port)
        except ValueError:
            problems.add(
                "udp", f"{self.udp!r} is no address with a port", "such as 127.0.0.1:47800"
            )
        else:
            if not (address.is_loopback or self.remote or self.shm):
                what = f"{host} can be reached from outside of this computer"
                problems.add("udp", what, "take 127.0.0.1, or say --remote (remote=True)")
        if self.alone and (self.lockstep or self.duration is None):
            problems.add(
                "alone", "has no end, or no clock", "give a duration, and leave out --lockstep"
            )
        if self.shm is not None and not is_memory_name(self.shm):
            problems.add("shm", *memory_name_problem(self.shm))

    @property
    def period(self) -> float:
        """Of a step, s."""
        return 1.0 / self.frequency

    @property
    def steps(self) -> int:
        """In all; 0 for no end."""
        if self.duration is None:
            return 0
        return max(round(min(self.duration * self.frequency, sys.float_info.max)), 1)

    @property
    def place(self) -> tuple[str, int]:
        """Host and port, or the name of shared memory and 0."""
        if self.shm is not None:
            return f"/{self.shm}", 0
        host, _, port = self.udp.rpartition(":")
        return host, int(port)

    def integrator(self, *, has_lines: bool) -> Method:
        """Of the plant, with drive lines or without."""
        substeps = self.substeps or max(math.ceil(self.period / LONGEST - 1e-9), 1)
        chosen = METHODS[self.method or ("adaptive" if has_lines else "rk4")]
        return (
            chosen.method
            if isinstance(chosen, Integrator)
            else Method.fixed(chosen, self.period / substeps)
        )
