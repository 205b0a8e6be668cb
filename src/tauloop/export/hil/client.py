"""The controller's side of the communication with a plant, in Python."""

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
from tauloop.export.hil.options import is_memory_name, memory_name_problem

# The constants are those of `plant_link.h`.
#: Number of leading doubles of a packet: version, sequence number, time and flags.
HEAD = 4
#: Maximum number of doubles in a packet.
MAX_PACKET_DOUBLES = 256
#: Flag of the last measurement.
END = 1
#: Flag of a measurement while brakes hold.
BRAKES = 2
#: Flag of a measurement whose equations have no solution.
FAILED = 4
#: Size of a mailbox, bytes.
_BOX = 16 + 8 * MAX_PACKET_DOUBLES
#: Size of the shared memory (two mailboxes, version and owner), bytes.
_MEMORY = 2 * _BOX + 16
#: Version at the end of the shared memory.
MEMORY_VERSION = 0x314C50546C756154


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantMeasurement(ReprMixin):
    """A measurement of a plant.

    Attributes:
        sequence: number of the sample.
        time: time of the plant, s.
        flags: 1 for the last measurement, 2 if brakes hold, 4 if the equations have no solution.
        values: measured values (n,) in the order of `PlantRun.names`: positions of the actuators,
            followed by their speeds.
    """

    sequence: int
    time: float
    flags: int
    values: np.ndarray

    @property
    def is_last(self) -> bool:
        """Whether this is the last measurement."""
        return bool(self.flags & END)


def store_whole(memory: mmap.mmap, offset: int, number: int) -> None:
    """Write an unsigned 8-byte number in one store, so that no other process sees half of it.

    `struct.pack_into` would write the bytes one after the other.
    """
    with memoryview(memory) as view, view[offset : offset + 8].cast("Q") as target:
        target[0] = number


class PlantClient:
    """A link to a plant by UDP or shared memory.

    Attributes:
        refused: number of rejected packets: with a wrong size or version, or numbers that are not
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
        """Open the link, and wait until the plant answers.

        Args:
            host, port: address of the plant.
            shm: name of shared memory, which replaces the address.
            wait: longest waiting time, s.

        Raises:
            EngineError: no plant answers.
            InputError: the name of the shared memory is invalid.

        Examples:
            >>> import tauloop as tl
            >>> tl.export.hil.PlantClient(port=9, wait=0.05)
            Traceback (most recent call last):
                ...
            tauloop.common.errors.EngineError: plant: no answer from 127.0.0.1:9
                remedy: start the plant first: tauloop run plant MACHINE
        """
        if shm is not None and not is_memory_name(shm):
            raise InputError.of("shm", *memory_name_problem(shm))
        self.refused = 0
        self._address = f"/dev/shm/{shm}" if shm else f"{host}:{port}"
        self._socket: socket.socket | None = None
        self._map: mmap.mmap | None = None
        self._last_count = 0
        self._first: PlantMeasurement | None = None
        deadline = time.monotonic() + wait
        if shm is None:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._socket.connect((host, port))
        while self._first is None:
            if time.monotonic() > deadline:
                self.close()
                raise EngineError.of(
                    "plant",
                    f"no answer from {self._address}",
                    "start the plant first: tauloop run plant MACHINE",
                )
            if shm is not None and self._map is None and not self._mapped(Path(self._address)):
                time.sleep(0.01)
                continue
            self.send(-1, 0.0, np.zeros(0))
            self._first = self._received(0.05)

    def _mapped(self, path: Path) -> bool:
        self._map = _shared_memory(path, "r+b", mmap.ACCESS_WRITE)
        return self._map is not None

    def __enter__(self) -> Self:
        """Return the link."""
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the link."""
        self.close()

    def close(self) -> None:
        """Close the link."""
        if self._socket is not None:
            self._socket.close()
        if self._map is not None:
            self._map.close()

    def send(self, sequence: int, at: float, force: np.ndarray, flags: int = 0) -> None:
        """Send a command: forces (n,), and the number of the measurement that it answers.

        Raises:
            InputError: the forces do not fit into a packet.
        """
        largest = MAX_PACKET_DOUBLES - HEAD
        if len(force) > largest:
            what = f"has {len(force)} values, but a packet contains at most {largest}"
            raise InputError.of("force", what, "give one force per actuator or motor of the plant")
        row = struct.pack(f"<{HEAD + len(force)}d", 1.0, sequence, at, flags, *force)
        if self._socket is not None:
            # the plant has not started or has ended; its last packet may still arrive
            with suppress(ConnectionError):
                self._socket.send(row)
        elif self._map is not None:
            (count,) = struct.unpack_from("<Q", self._map, _BOX)
            # the next odd number; a controller that was killed while writing leaves an odd count
            count = (count + 1) | 1
            store_whole(self._map, _BOX, count)
            store_whole(self._map, _BOX + 8, len(row) // 8)
            self._map[_BOX + 16 : _BOX + 16 + len(row)] = row
            store_whole(self._map, _BOX, count + 1)

    def receive(self, timeout: float = 5.0) -> PlantMeasurement | None:
        """Return the next measurement; None if none arrives within the timeout (s)."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        return self._received(timeout)

    def _received(self, timeout: float) -> PlantMeasurement | None:
        until = time.monotonic() + timeout
        while True:
            remaining = max(until - time.monotonic(), 0.0)
            row = (
                self._datagram(remaining)
                if self._socket is not None
                else self._from_mailbox(remaining)
            )
            if row is None:
                return None
            if (measurement := _measurement(row)) is not None:
                return measurement
            self.refused += 1

    def _datagram(self, timeout: float) -> bytes | None:
        assert self._socket is not None
        until = time.monotonic() + timeout
        while True:
            # a timeout of zero would make the socket non-blocking and raise another error
            self._socket.settimeout(max(until - time.monotonic(), 1e-6))
            try:
                # one byte more reveals datagrams that are too long
                return self._socket.recv(8 * MAX_PACKET_DOUBLES + 1)
            except TimeoutError:
                return None
            # an error of an earlier send; received packets can still be read
            except ConnectionError:
                time.sleep(0.001)

    def _from_mailbox(self, timeout: float) -> bytes | None:
        assert self._map is not None
        until = time.monotonic() + timeout
        while True:
            count, size = struct.unpack_from("<QQ", self._map, 0)
            if count != self._last_count and not count & 1:
                row = self._map[16 : 16 + 8 * size] if size <= MAX_PACKET_DOUBLES else b""
                if struct.unpack_from("<Q", self._map, 0) == (count,):
                    self._last_count = count
                    return row
            if time.monotonic() >= until:
                return None
            time.sleep(0)


class PlantObserver:
    """A reader of the measurements of a plant in shared memory, in addition to its controller.

    It sends nothing, so it does not disturb the run.
    """

    def __init__(self, shm: str, *, wait: float = 30.0) -> None:
        """Open the memory.

        Args:
            shm: name of the shared memory.
            wait: longest waiting time for the plant, s.

        Raises:
            EngineError: no plant uses the memory.
            InputError: the name is invalid.
        """
        if not is_memory_name(shm):
            raise InputError.of("shm", *memory_name_problem(shm))
        path = Path(f"/dev/shm/{shm}")
        until = time.monotonic() + wait
        while (memory := _shared_memory(path, "rb", mmap.ACCESS_READ)) is None:
            if time.monotonic() > until:
                remedy = f"start the plant first: tauloop run plant MACHINE --shm {shm}"
                raise EngineError.of("shm", f"no plant uses the memory {shm}", remedy)
            time.sleep(0.01)
        self._map = memory
        self._owner = int(struct.unpack_from("<q", memory, 2 * _BOX + 8)[0])

    @property
    def is_running(self) -> bool:
        """Whether the plant's process exists."""
        return _is_alive(self._owner)

    def latest(self) -> PlantMeasurement | None:
        """Return the newest measurement; None before the first one."""
        while True:
            count, size = struct.unpack_from("<QQ", self._map, 0)
            if count == 0:
                return None
            if count & 1 or size > MAX_PACKET_DOUBLES:
                time.sleep(0)
                continue
            row = self._map[16 : 16 + 8 * size]
            if struct.unpack_from("<Q", self._map, 0) == (count,):
                return _measurement(row)

    def close(self) -> None:
        """Release the memory."""
        self._map.close()


def _shared_memory(path: Path, mode: str, access: int) -> mmap.mmap | None:
    """Return the memory of a running plant; None if there is no plant, or it is still starting."""
    try:
        with path.open(mode) as file:
            if path.stat().st_size < _MEMORY:
                return None
            memory = mmap.mmap(file.fileno(), _MEMORY, access=access)
    except OSError:
        return None
    version, owner = struct.unpack_from("<Qq", memory, 2 * _BOX)
    if version == MEMORY_VERSION and _is_alive(owner):
        return memory
    memory.close()
    return None


def _measurement(row: bytes) -> PlantMeasurement | None:
    """Return the measurement of a packet; None if its size, version or head is wrong."""
    if len(row) % 8 or not HEAD <= len(row) // 8 <= MAX_PACKET_DOUBLES:
        return None
    values = np.frombuffer(row, dtype="<f8").copy()
    version, sequence, at, flags = values[:HEAD]
    if version != 1.0 or not np.isfinite(values[:HEAD]).all():
        return None
    return PlantMeasurement(
        sequence=int(sequence), time=float(at), flags=int(flags), values=values[HEAD:]
    )


def _is_alive(process: int) -> bool:
    """Return whether a process with this number exists."""
    if process <= 0:
        return False
    try:
        os.kill(process, 0)
    except PermissionError:
        return True  # a process of another user
    except (ProcessLookupError, OverflowError):
        return False
    return True
