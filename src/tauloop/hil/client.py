"""A controller's side of the link, in Python."""

from __future__ import annotations

import mmap
import socket
import struct
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from tauloop.errors import EngineError
from tauloop.records import dataclass
from tauloop.shown import Shown

#: Doubles in front of what is measured or asked for, the most in a row, and flags, as in `plant_link.h`.
HEAD, MOST, END, BRAKES, FAILED = 4, 256, 1, 2, 4
_BOX = 16 + 8 * MOST


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantMeasurement(Shown):
    """What a plant says.

    Attributes:
        sequence: number of the sample.
        time: of the plant, s.
        flags: of the plant: 1 the last one, 2 brakes hold, 4 the equations have no solution.
        values: what it measures (n,), as `PlantRun` names it: positions of the actuators first, then their speeds.
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
    """A link to a plant: by UDP, or by shared memory."""

    def __init__(
        self, host: str = "127.0.0.1", port: int = 47800, *, shm: str | None = None, wait: float = 30.0
    ) -> None:
        """Open it, and wait until the plant answers.

        Args:
            host, port: where the plant listens.
            shm: name of shared memory in place of them.
            wait: longest time for that, s.

        Raises:
            EngineError: no plant answers.

        Examples:
            >>> import tauloop as tl
            >>> tl.hil.PlantClient(port=9, wait=0.05)
            Traceback (most recent call last):
                ...
            tauloop.errors.EngineError: plant: none answers at 127.0.0.1:9
                remedy: start it first: tauloop run plant MACHINE
        """
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
                    "plant", f"none answers at {self._place}", "start it first: tauloop run plant MACHINE"
                )
            if shm is not None and self._map is None and not self._mapped(Path(self._place)):
                time.sleep(0.01)
                continue
            try:
                self.send(-1, 0.0, np.zeros(0))
                self._first = self._received(0.05)
            except ConnectionError:
                time.sleep(0.01)

    def _mapped(self, path: Path) -> bool:
        try:
            with path.open("r+b") as file:
                if path.stat().st_size >= 2 * _BOX:
                    self._map = mmap.mmap(file.fileno(), 2 * _BOX)
        except OSError:
            return False
        return self._map is not None

    def __enter__(self) -> Self:
        """The link."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
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
        """Send a command: forces (n,), with the sequence number of the measurement that it answers."""
        row = struct.pack(f"<{HEAD + len(force)}d", 1.0, sequence, at, flags, *force)
        if self._socket is not None:
            self._socket.send(row)
        elif self._map is not None:
            (count,) = struct.unpack_from("<Q", self._map, _BOX)
            struct.pack_into("<Q", self._map, _BOX, count + 1)
            struct.pack_into("<Q", self._map, _BOX + 8, len(row) // 8)
            self._map[_BOX + 16 : _BOX + 16 + len(row)] = row
            struct.pack_into("<Q", self._map, _BOX, count + 2)

    def receive(self, timeout: float = 5.0) -> PlantMeasurement | None:
        """The next measurement, or None where none comes in time, s."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        return self._received(timeout)

    def _received(self, timeout: float) -> PlantMeasurement | None:
        row = self._datagram(timeout) if self._socket is not None else self._mailed(timeout)
        if row is None:
            return None
        values = np.frombuffer(row, dtype="<f8").copy()
        _, sequence, at, flags = values[:HEAD]
        return PlantMeasurement(sequence=int(sequence), time=float(at), flags=int(flags), values=values[HEAD:])

    def _datagram(self, timeout: float) -> bytes | None:
        assert self._socket is not None
        self._socket.settimeout(timeout)
        try:
            return self._socket.recv(8 * MOST)
        except TimeoutError:
            return None

    def _mailed(self, timeout: float) -> bytes | None:
        assert self._map is not None
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            count, size = struct.unpack_from("<QQ", self._map, 0)
            if count != self._seen and not count & 1:
                row = self._map[16 : 16 + 8 * min(size, MOST)]
                if struct.unpack_from("<Q", self._map, 0) == (count,):
                    self._seen = count
                    return row
            time.sleep(0)
        return None
