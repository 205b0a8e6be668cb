"""Progress of workflows, reported to a function of the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

#: A function that is called with the number of steps done, which rises, and the constant total.
Progress = Callable[[int, int], None]
#: Number of steps of a stage, for progress within it.
STEPS_PER_STAGE = 1000


class Stages:
    """A known number of stages of a workflow, with progress within each stage.

    stages = Stages(progress, 1 + len(engines))
    states = random_states(..., progress=stages.part)
    stages.done()
    for engine in stages.over(engines): ...
    """

    def __init__(self, progress: Progress | None, total: int) -> None:
        """Start the first of all stages.

        Args:
            progress: the function to call; None for no reports.
            total: number of stages.
        """
        self._progress = progress
        self._total = total
        self._completed = 0
        self._reported = -1
        self.part(0, 1)

    def part(self, done: float, total: float) -> None:
        """Report progress within the current stage, unless it is less than reported before.

        This method is a `Progress` itself.
        """
        completed_steps = STEPS_PER_STAGE * self._completed
        reached = completed_steps + int(STEPS_PER_STAGE * min(done / total, 1.0))
        if self._progress is not None and reached > self._reported:
            self._progress(reached, STEPS_PER_STAGE * self._total)
            self._reported = reached

    def done(self) -> None:
        """End the current stage."""
        self.part(1, 1)
        self._completed += 1

    def over(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items, with a stage for each."""
        for item in items:
            yield item
            self.done()
