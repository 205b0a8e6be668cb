"""Least-recently-used (LRU) cache with a bound on the total size of its values."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Generic, TypeVar, final

Value = TypeVar("Value")


@final
class Recent(Generic[Value]):
    """Least-recently-used (LRU) cache of values by key.

    When the total size exceeds a bound, the least recently used values are removed, except the last
    one that was used. Threads can share this object. A copied or unpickled object is empty.
    """

    def __init__(self, largest: float) -> None:
        """Start without values.

        Args:
            largest: bound on the sum of the sizes.
        """
        self.largest = largest
        self._values: dict[Hashable, tuple[Value, float]] = {}
        self._total = 0.0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def __reduce__(self) -> tuple[type[Recent[Any]], tuple[float]]:
        return Recent, (self.largest,)

    def get(
        self,
        key: Hashable,
        compute: Callable[[], Value],
        size: Callable[[Value], float] = lambda _: 1.0,
    ) -> Value:
        """Return the value of a key; compute and store it if it is not in the cache.

        Args:
            key: everything that determines the value.
            compute: function that returns the value. If it raises an exception, nothing is stored.
            size: function that returns the size of the value.
        """
        with self._lock:
            entry = self._values.pop(key, None)
            if entry is not None:
                self._values[key] = entry  # dictionaries keep the order of insertion
                return entry[0]
        value = compute()
        with self._lock:
            # another thread may have computed the value at the same time
            entry = self._values.pop(key, None)
            if entry is None:
                entry = value, size(value)
                self._total += entry[1]
            self._values[key] = entry
            while self._total > self.largest and len(self._values) > 1:
                self._total -= self._values.pop(next(iter(self._values)))[1]
            return entry[0]

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._values.clear()
            self._total = 0.0
