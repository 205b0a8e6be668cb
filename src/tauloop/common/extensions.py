"""What installed packages bring: objects that are chosen by name beside those of Tauloop itself.

A package says in its `pyproject.toml` what it brings:

    [project.entry-points."tauloop.losses"]
    tukey = "my_package:TUKEY"

and `tauloop calibrate --loss tukey` finds it. `GROUPS` lists what can be brought. Nothing is
imported, nor is it looked for what is installed, before a name is asked for that Tauloop itself
does not know, or a result is to be reported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

from tauloop.common.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: What can be brought: group of entry points, and what each of them is.
GROUPS: Mapping[str, str] = {
    "tauloop.commands": "a function that becomes a command of `tauloop`",
    "tauloop.controllers": "a class derived from `simulation.Controller`",
    "tauloop.estimators": "an `identification.Estimator`, ready to be used",
    "tauloop.formats": "a `formats.Format`, ready to be used",
    "tauloop.formulations": "an `equations.formulations.Formulation`",
    "tauloop.joints": "a `mechanism.JointKind` with its `placement`",
    "tauloop.losses": "a `calibration.Loss`, ready to be used",
    "tauloop.parts": "a `display.ReportPart`, ready to be used",
    "tauloop.routes": "a `simulation.Route`, ready to be used",
    "tauloop.templates": "the `pathlib.Path` of a machine file whose named values have bounds",
}

T = TypeVar("T")


@final
class Offered(Mapping[str, T], Generic[T]):
    """What may be chosen by name: Tauloop's own by `own`, and what packages bring.

    An own name comes before one that is brought, so that nothing changes what a name of Tauloop's
    means.

    Attributes:
        own: those of Tauloop itself, in their order.
    """

    def __init__(
        self, group: str, kind: type, own: Mapping[str, T], *, of_class: bool = False
    ) -> None:
        """Offer.

        Args:
            group: one of `GROUPS`.
            kind: what is brought is an object of this class.
            own: Tauloop's own.
            of_class: it is a class derived from `kind` instead.
        """
        self.own = own
        self._group, self._kind, self._of_class = group, kind, of_class

    def __getitem__(self, name: str) -> T:
        """The object of that name.

        Raises:
            KeyError: nobody has it.
            InputError: a package brings it, and it is not what it should be.
        """
        return self.own[name] if name in self.own else self._loaded(brought(self._group)[name])

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in brought(self._group)

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from sorted(brought(self._group).keys() - self.own.keys())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _loaded(self, entry: EntryPoint) -> T:
        package = entry.dist.name if entry.dist else "a package"
        try:
            loaded: Any = entry.load()
        except Exception as error:  # another's code: whatever it raises is its own
            what = f"{package} brings it, and cannot be imported: {type(error).__name__}: {error}"
            raise InputError.of(entry.name, what, f"mend or remove {package}") from error
        is_right = (
            isinstance(loaded, type) and issubclass(loaded, self._kind)
            if self._of_class
            else isinstance(loaded, self._kind)
        )
        if not is_right:
            what = f"what {package} brings is not {GROUPS[self._group]}"
            raise InputError.of(entry.name, what, f"mend or remove {package}")
        return loaded


@cache
def brought(group: str) -> dict[str, EntryPoint]:
    """What installed packages bring, by name."""
    if not any(f"[{group}]" in text for text in _entry_points()):
        return {}
    # takes longer than all else here, and is seldom needed
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=group)}


def _entry_points() -> tuple[str, ...]:
    """What installed packages say that they bring; "[GROUP]" of every group where one of them may lie in an archive."""
    paths = [Path(folder) for folder in sys.path]
    if any(path.is_file() for path in paths):
        return tuple(f"[{group}]" for group in GROUPS)
    files = (file for path in paths for file in path.glob("*.*-info/entry_points.txt"))
    return tuple(file.read_text(encoding="utf-8", errors="replace") for file in files)
