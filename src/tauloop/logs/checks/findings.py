"""Collecting everything that is wrong with a log: all kinds at once, the first few of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from tauloop.common.errors import LogError, Problem, Problems

#: How many problems of one kind are listed in full for one file; the others are only counted.
LISTED_PER_KIND = 10


class Findings:
    """Problems found while a log is read, grouped by kind and file."""

    def __init__(self) -> None:
        """Start without problems."""
        self._listed: dict[tuple[str, str], list[Problem]] = {}
        self._counts: Counter[tuple[str, str]] = Counter()

    @property
    def total(self) -> int:
        """Return how many problems there are, listed or not."""
        return self._counts.total()

    def add(
        self, kind: str, where: str, what: str, remedy: str, file: str = "", line: int | None = None
    ) -> None:
        """Note one problem of a kind, which is a plural such as ``"empty cells"``."""
        key = (kind, file)
        self._counts[key] += 1
        listed = self._listed.setdefault(key, [])
        if len(listed) < LISTED_PER_KIND:
            listed.append(Problem(where=where, what=what, remedy=remedy, file=file, line=line))

    def include(self, problems: Iterable[Problem]) -> None:
        """Note problems that an error brought along."""
        for p in problems:
            self.add("files", p.where, p.what, p.remedy, p.file, p.line)

    def absorb(self, other: Findings, *, but: Collection[str]) -> None:
        """Note all that others hold, but for some kinds."""
        for key, listed in other._listed.items():
            if key[0] not in but:
                self._listed.setdefault(key, []).extend(listed)
                self._counts[key] += other._counts[key]

    def count(self, kind: str, file: str, more: int) -> None:
        """Note that there are more problems of a kind than were added one by one."""
        if more:
            self._counts[(kind, file)] += more

    def problems(self) -> tuple[Problem, ...]:
        """Return every kind in the order in which it was first met, with a count of what is not listed."""
        result = Problems()
        for (kind, file), listed in self._listed.items():
            result += listed
            more = self._counts[(kind, file)] - len(listed)
            if more > 0:
                result.add(where=kind, what=f"and {more} more", file=file)
        return tuple(result)

    def raise_if_any(self) -> None:
        """Raise everything found.

        Raises:
            LogError: there is at least one problem.
        """
        if self.total:
            raise LogError(self.problems())
