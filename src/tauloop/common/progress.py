"""Progress of workflows: what is done and what there is to do, reported to whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

#: Called with what is done and what there is to do: the first rises to the second, which stays.
Progress = Callable[[int, int], None]
#: What a stage of a workflow counts, so that it can report within.
SHARES = 1000


class Stages:
    """The stages of a workflow, whose number is known: each that is done is reported, and so is progress within it.

    stages = Stages(progress, 1 + len(engines))
    states = random_states(..., progress=stages.part)
    stages.done()
    for engine in stages.over(engines): ...
    """

    def __init__(self, progress: Progress | None, total: int) -> None:
        """Begin; nobody hears of it where `progress` is None."""
        self._progress, self._total, self._passed, self._last = progress, total, 0, -1
        self.part(0, 1)

    def part(self, done: float, total: float) -> None:
        """Progress within the stage at work; it is a `Progress` itself. What falls behind is not reported."""
        reached = SHARES * self._passed + int(SHARES * min(done / total, 1.0))
        if self._progress is not None and reached > self._last:
            self._progress(reached, SHARES * self._total)
            self._last = reached

    def done(self) -> None:
        """The stage at work is done."""
        self.part(1, 1)
        self._passed += 1

    def over(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items, a stage each."""
        for item in items:
            yield item
            self.done()
