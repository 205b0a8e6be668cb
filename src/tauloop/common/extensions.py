"""Plugins of installed packages: objects that can be chosen by name, like those of Tauloop.

A package declares its plugins as entry points in its `pyproject.toml`:

    [project.entry-points."tauloop.losses"]
    tukey = "my_package:TUKEY"

`tauloop calibrate --loss tukey` then uses this loss. `GROUPS` lists the kinds of plugins. Installed
packages are searched and imported only if a requested name is not defined by Tauloop, or if a
result is reported.
"""

from __future__ import annotations

import sys
from collections import ChainMap
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

from tauloop.common.errors import InputError
from tauloop.common.names.suggestions import suggestion

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: Kinds of plugins: group of entry points, and the object that an entry point refers to.
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
class Registry(ChainMap[str, T], Generic[T]):
    """Objects that can be chosen by name: those of Tauloop, then plugins of installed packages.

    A name of Tauloop takes precedence over a plugin of the same name. A registry cannot be changed.
    """

    def __init__(
        self, group: str, kind: type, own: Mapping[str, T], *, of_class: bool = False
    ) -> None:
        """Create the registry of a group.

        Args:
            group: one of `GROUPS`.
            kind: class of the objects.
            own: objects of Tauloop.
            of_class: True if the objects are classes derived from `kind`, False if they are
                instances.
        """
        # A ChainMap also accepts mappings that cannot be changed.
        super().__init__(MappingProxyType(own), _Plugins(group, kind, of_class))  # type: ignore[arg-type]

    @property
    def own(self) -> Mapping[str, T]:
        """Objects of Tauloop, in their order."""
        return self.maps[0]

    def __iter__(self) -> Iterator[str]:
        names = [name for mapping in self.maps for name in mapping]
        return iter(dict.fromkeys(names))

    def named(self, name: str, where: str) -> T:
        """Return the object with a name that a caller passed as an argument.

        Args:
            name: registered name of the object.
            where: name of the argument, for errors.

        Raises:
            InputError: the name is unknown, or a plugin cannot be used.
        """
        if name not in self:
            remedy = suggestion(name, self) or f"known are {', '.join(self)}"
            raise InputError.of(where, f"{name!r} is unknown", remedy)
        return self[name]


class _Plugins(Mapping[str, T]):
    """The plugins of a group by name; each is imported when it is read."""

    def __init__(self, group: str, kind: type, of_class: bool) -> None:
        self._group, self._kind, self._of_class = group, kind, of_class

    def __contains__(self, name: object) -> bool:
        return name in installed_plugins(self._group)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(installed_plugins(self._group)))

    def __len__(self) -> int:
        return len(installed_plugins(self._group))

    def __getitem__(self, name: str) -> T:
        """Import a plugin and check its class.

        Raises:
            KeyError: the name is unknown.
            InputError: the plugin cannot be imported or has the wrong class.
        """
        entry = installed_plugins(self._group)[name]
        package = entry.dist.name if entry.dist else "a package"
        remedy = f"repair or remove {package}"
        try:
            loaded: Any = entry.load()
        except Exception as error:  # Code of another package may raise any exception.
            what = f"the plugin of {package} cannot be imported: {type(error).__name__}: {error}"
            raise InputError.of(entry.name, what, remedy) from error
        if self._of_class:
            is_valid = isinstance(loaded, type) and issubclass(loaded, self._kind)
        else:
            is_valid = isinstance(loaded, self._kind)
        if not is_valid:
            what = f"the plugin of {package} is not {GROUPS[self._group]}"
            raise InputError.of(entry.name, what, remedy)
        return loaded


@cache
def installed_plugins(group: str) -> dict[str, EntryPoint]:
    """Return the plugins of installed packages in a group, by name."""
    if not any(f"[{group}]" in text for text in _entry_points()):
        return {}
    # Imported late, because the import is slow and rarely needed.
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=group)}


def _entry_points() -> tuple[str, ...]:
    """Return the texts of the files with entry points of installed packages.

    If packages may be in archives, which are not searched, the texts contain "[GROUP]" for every
    group.
    """
    paths = [Path(folder) for folder in sys.path]
    if any(path.is_file() for path in paths):
        return tuple(f"[{group}]" for group in GROUPS)
    files = (file for path in paths for file in path.glob("*.*-info/entry_points.txt"))
    return tuple(file.read_text(encoding="utf-8", errors="replace") for file in files)
