"""Progress of workflows, reported to a callback of the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

#: A function that is called with the number of completed steps, which increases, and the total
#: number.
Progress = Callable[[int, int], None]
#: Number of steps per stage.
STEPS_PER_STAGE = 1000


class Stages:
    """Progress of a workflow with a known number of stages.

    For example, with one stage for the states and one for each engine::

        stages = Stages(progress, 1 + len(engines))
        states = random_states(..., progress=stages.part)
        stages.done()
        for engine in stages.over(engines): ...
    """

    def __init__(self, progress: Progress | None, total: int) -> None:
        """Start the first stage.

        Args:
            progress: function to call; None for no reports.
            total: number of stages.
        """
        self._progress = progress
        self._total = total
        self._completed = 0
        self._reported = -1
        self.part(0, 1)

    def part(self, done: float, total: float) -> None:
        """Report the completed fraction done / total of the current stage.

        Values below an earlier report are ignored. The method can be passed as a `Progress`.
        """
        steps = STEPS_PER_STAGE * self._completed
        steps += int(STEPS_PER_STAGE * min(done / total, 1.0))
        if self._progress is not None and steps > self._reported:
            self._progress(steps, STEPS_PER_STAGE * self._total)
            self._reported = steps

    def done(self) -> None:
        """End the current stage."""
        self.part(1, 1)
        self._completed += 1

    def over(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items, with a stage for each."""
        for item in items:
            yield item
            self.done()
