"""A controller's side of the link, in Python."""

from __future__ import annotations

import mmap
import os
import socket
import struct
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from tauloop.common.errors import EngineError, InputError
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.hil.options import is_memory_name, memory_name_problem

#: Doubles in front of what is measured or asked for, the most in a row, and flags, as in
#: `plant_link.h`.
HEAD, MOST, END, BRAKES, FAILED = 4, 256, 1, 2, 4
#: Bytes of a mailbox and of both with the version and the owner behind them, and that version.
_BOX = 16 + 8 * MOST
_MEMORY, MEMORY_VERSION = 2 * _BOX + 16, 0x314C50546C756154


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantMeasurement(ReprMixin):
    """What a plant says.

    Attributes:
        sequence: number of the sample.
        time: of the plant, s.
        flags: of the plant: 1 the last one, 2 brakes hold, 4 the equations have no solution.
        values: what it measures (n,), as `PlantRun` names it: positions of the actuators first,
            then their speeds.
    """

    sequence: int
    time: float
    flags: int
    values: np.ndarray

    @property
    def is_last(self) -> bool:
        """Whether nothing follows."""
        return bool(self.flags & END)


class PlantClient:
    """A link to a plant: by UDP, or by shared memory.

    Attributes:
        refused: number of packets that were not a measurement: of another size or version, or not
            finite.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 47800,
        *,
        shm: str | None = None,
        wait: float = 30.0,
    ) -> None:
        """Open it, and wait until the plant answers.

        Args:
            host, port: where the plant listens.
            shm: name of shared memory in place of them.
            wait: longest time for that, s.

        Raises:
            EngineError: no plant answers.
            InputError: a name that shared memory cannot have.

        Examples:
            >>> import tauloop as tl
            >>> tl.hil.PlantClient(port=9, wait=0.05)
            Traceback (most recent call last):
                ...
            tauloop.common.errors.EngineError: plant: none answers at 127.0.0.1:9
                remedy: start it first: tauloop run plant MACHINE
        """
        if shm is not None and not is_memory_name(shm):
            raise InputError.of("shm", *memory_name_problem(shm))
        self.refused = 0
        self._place = f"/dev/shm/{shm}" if shm else f"{host}:{port}"
        self._socket: socket.socket | None = None
        self._map: mmap.mmap | None = None
        self._seen = 0
        self._first: PlantMeasurement | None = None
        until = time.monotonic() + wait
        if shm is None:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._socket.connect((host, port))
        while self._first is None:
            if time.monotonic() > until:
                self.close()
                raise EngineError.of(
                    "plant",
                    f"none answers at {self._place}",
                    "start it first: tauloop run plant MACHINE",
                )
            if shm is not None and self._map is None and not self._mapped(Path(self._place)):
                time.sleep(0.01)
                continue
            self.send(-1, 0.0, np.zeros(0))
            self._first = self._received(0.05)

    def _mapped(self, path: Path) -> bool:
        try:
            with path.open("r+b") as file:
                if path.stat().st_size < _MEMORY:
                    return False
                memory = mmap.mmap(file.fileno(), _MEMORY)
        except OSError:
            return False
        version, owner = struct.unpack_from("<Qq", memory, 2 * _BOX)
        if version == MEMORY_VERSION and _is_alive(owner):
            self._map = memory
        else:  # a plant that has ended left it behind, or one is preparing it
            memory.close()
        return self._map is not None

    def __enter__(self) -> Self:
        """The link."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close it."""
        if self._socket is not None:
            self._socket.close()
        if self._map is not None:
            self._map.close()

    def send(self, sequence: int, at: float, force: np.ndarray, flags: int = 0) -> None:
        """Send a command: forces (n,), with the sequence number of the measurement that it answers.

        Raises:
            InputError: more forces than a packet holds.
        """
        if len(force) > MOST - HEAD:
            what = f"has {len(force)} values, and a packet holds {MOST - HEAD}"
            raise InputError.of("force", what, "give one per actuator or motor of the plant")
        row = struct.pack(f"<{HEAD + len(force)}d", 1.0, sequence, at, flags, *force)
        if self._socket is not None:
            # no plant listens yet, or it has ended: its last packet may be on its way
            with suppress(ConnectionError):
                self._socket.send(row)
        elif self._map is not None:
            (count,) = struct.unpack_from("<Q", self._map, _BOX)
            # the next odd number: a controller that was killed while it wrote has left an odd one
            count = (count + 1) | 1
            struct.pack_into("<Q", self._map, _BOX, count)
            struct.pack_into("<Q", self._map, _BOX + 8, len(row) // 8)
            self._map[_BOX + 16 : _BOX + 16 + len(row)] = row
            struct.pack_into("<Q", self._map, _BOX, count + 1)

    def receive(self, timeout: float = 5.0) -> PlantMeasurement | None:
        """The next measurement, or None where none comes in time, s."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        return self._received(timeout)

    def _received(self, timeout: float) -> PlantMeasurement | None:
        until = time.monotonic() + timeout
        while True:
            left = max(until - time.monotonic(), 0.0)
            row = self._datagram(left) if self._socket is not None else self._mailed(left)
            if row is None:
                return None
            if (measurement := _measurement(row)) is not None:
                return measurement
            self.refused += 1

    def _datagram(self, timeout: float) -> bytes | None:
        assert self._socket is not None
        until = time.monotonic() + timeout
        while True:
            # 0 would not wait, and raise another error
            self._socket.settimeout(max(until - time.monotonic(), 1e-6))
            try:
                # a byte more shows that a datagram is too long
                return self._socket.recv(8 * MOST + 1)
            except TimeoutError:
                return None
            # of what was sent before; what has come by then is still to be read
            except ConnectionError:
                time.sleep(0.001)

    def _mailed(self, timeout: float) -> bytes | None:
        assert self._map is not None
        until = time.monotonic() + timeout
        while True:
            count, size = struct.unpack_from("<QQ", self._map, 0)
            if count != self._seen and not count & 1:
                row = self._map[16 : 16 + 8 * size] if size <= MOST else b""
                if struct.unpack_from("<Q", self._map, 0) == (count,):
                    self._seen = count
                    return row
            if time.monotonic() >= until:
                return None
            time.sleep(0)


def _measurement(row: bytes) -> PlantMeasurement | None:
    """Return the measurement of a packet; None where its size, its version or its head is wrong."""
    if len(row) % 8 or not HEAD <= len(row) // 8 <= MOST:
        return None
    values = np.frombuffer(row, dtype="<f8").copy()
    version, sequence, at, flags = values[:HEAD]
    if version != 1.0 or not np.isfinite(values[:HEAD]).all():
        return None
    return PlantMeasurement(
        sequence=int(sequence), time=float(at), flags=int(flags), values=values[HEAD:]
    )


def _is_alive(process: int) -> bool:
    """Return whether a process of this number is there."""
    if process <= 0:
        return False
    try:
        os.kill(process, 0)
    except PermissionError:
        return True  # of another user
    except (ProcessLookupError, OverflowError):
        return False
    return True
