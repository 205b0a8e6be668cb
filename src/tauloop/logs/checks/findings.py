"""Collection of all problems of a log, with the first few of each kind in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from tauloop.common.errors import LogError, Problem, Problems

#: Number of listed problems of one kind and file; further ones are only counted.
LISTED_PER_KIND = 10


class Findings:
    """Problems found while a log is read, grouped by kind and file."""

    def __init__(self) -> None:
        """Start without problems."""
        self._listed: dict[tuple[str, str], list[Problem]] = {}
        self._counts: Counter[tuple[str, str]] = Counter()

    @property
    def total(self) -> int:
        """Return the number of problems, including unlisted ones."""
        return self._counts.total()

    def add(
        self, kind: str, where: str, what: str, remedy: str, file: str = "", line: int | None = None
    ) -> None:
        """Add a problem; its kind is a plural noun such as ``"empty cells"``."""
        key = (kind, file)
        self._counts[key] += 1
        listed = self._listed.setdefault(key, [])
        if len(listed) < LISTED_PER_KIND:
            listed.append(Problem(where=where, what=what, remedy=remedy, file=file, line=line))

    def include(self, problems: Iterable[Problem]) -> None:
        """Add the problems of an error."""
        for p in problems:
            self.add("files", p.where, p.what, p.remedy, p.file, p.line)

    def absorb(self, other: Findings, *, but: Collection[str]) -> None:
        """Add all problems of other findings, except for some kinds."""
        for key, listed in other._listed.items():
            if key[0] not in but:
                self._listed.setdefault(key, []).extend(listed)
                self._counts[key] += other._counts[key]

    def count(self, kind: str, file: str, more: int) -> None:
        """Count further problems of a kind without listing them."""
        if more:
            self._counts[(kind, file)] += more

    def problems(self) -> tuple[Problem, ...]:
        """Return all kinds in the order of their first problem, with counts of unlisted ones."""
        result = Problems()
        for (kind, file), listed in self._listed.items():
            result += listed
            more = self._counts[(kind, file)] - len(listed)
            if more > 0:
                result.add(where=kind, what=f"and {more} more", file=file)
        return tuple(result)

    def raise_if_any(self) -> None:
        """Raise an error with all problems.

        Raises:
            LogError: there is at least one problem.
        """
        if self.total:
            raise LogError(self.problems())
