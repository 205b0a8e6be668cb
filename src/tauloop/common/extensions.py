"""Plugins: named objects that installed packages add to those of Tauloop.

A package declares its plugins as entry points in its `pyproject.toml`:

    [project.entry-points."tauloop.losses"]
    tukey = "my_package:TUKEY"

`tauloop calibrate --loss tukey` then uses this loss. `GROUPS` lists the kinds of plugins. Installed
packages are searched only if Tauloop does not define a requested name, or if all objects of a
registry are listed, such as for a report. A plugin is imported when its object is used.
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
    "tauloop.estimators": "an instance of `identification.Estimator`",
    "tauloop.formats": "an instance of `formats.Format`",
    "tauloop.formulations": "an `equations.formulations.Formulation`",
    "tauloop.joints": "a `mechanism.JointKind` with its `placement`",
    "tauloop.losses": "an instance of `calibration.Loss`",
    "tauloop.parts": "an instance of `display.ReportPart`",
    "tauloop.routes": "an instance of `simulation.Route`",
    "tauloop.templates": "the `pathlib.Path` of a machine file whose named values have bounds",
}

T = TypeVar("T")


@final
class Registry(ChainMap[str, T], Generic[T]):
    """Objects that can be chosen by name: those of Tauloop, then plugins of installed packages.

    A name of Tauloop takes precedence over a plugin of the same name. A registry cannot be changed.
    """

    def __init__(
        self, group: str, kind: type, builtin: Mapping[str, T], *, holds_classes: bool = False
    ) -> None:
        """Create the registry of a group.

        Args:
            group: one of `GROUPS`.
            kind: class of the objects.
            builtin: objects of Tauloop by name.
            holds_classes: True if the objects are classes derived from `kind`, False if they are
                instances.
        """
        # A ChainMap also accepts mappings that cannot be changed.
        super().__init__(MappingProxyType(builtin), _Plugins(group, kind, holds_classes))  # type: ignore[arg-type]

    @property
    def builtin(self) -> Mapping[str, T]:
        """Objects of Tauloop by name, in their order."""
        return self.maps[0]

    def __iter__(self) -> Iterator[str]:
        names = [name for mapping in self.maps for name in mapping]
        return iter(dict.fromkeys(names))

    def lookup(self, name: str, where: str) -> T:
        """Return the object whose name a caller passed as an argument.

        Args:
            name: registered name of the object.
            where: name of the argument, for errors.

        Raises:
            InputError: the name is unknown, or the plugin cannot be imported or has the wrong
                class.
        """
        if name not in self:
            remedy = suggestion(name, self) or f"choose one of {', '.join(self)}"
            raise InputError.of(where, f"{name!r} is unknown", remedy)
        return self[name]


class _Plugins(Mapping[str, T]):
    """The plugins of a group by name; each is imported when its value is read."""

    def __init__(self, group: str, kind: type, holds_classes: bool) -> None:
        self._group = group
        self._kind = kind
        self._holds_classes = holds_classes

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
            plugin: Any = entry.load()
        except Exception as error:  # Code of another package may raise any exception.
            what = f"the plugin of {package} cannot be imported: {type(error).__name__}: {error}"
            raise InputError.of(entry.name, what, remedy) from error
        if self._holds_classes:
            is_valid = isinstance(plugin, type) and issubclass(plugin, self._kind)
        else:
            is_valid = isinstance(plugin, self._kind)
        if not is_valid:
            what = f"the plugin of {package} is not {GROUPS[self._group]}"
            raise InputError.of(entry.name, what, remedy)
        return plugin


@cache
def installed_plugins(group: str) -> dict[str, EntryPoint]:
    """Return the plugins of installed packages in a group, by name."""
    if not any(f"[{group}]" in text for text in _entry_points()):
        return {}
    # Imported late, because the import is slow and rarely needed.
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=group)}


def _entry_points() -> tuple[str, ...]:
    """Return the contents of the files `entry_points.txt` of installed packages.

    If an entry of `sys.path` is an archive, which this function cannot search, return a placeholder
    "[GROUP]" for every group, so that the caller searches with `importlib.metadata`.
    """
    paths = [Path(folder) for folder in sys.path]
    if any(path.is_file() for path in paths):
        return tuple(f"[{group}]" for group in GROUPS)
    files = (file for path in paths for file in path.glob("*.*-info/entry_points.txt"))
    return tuple(file.read_text(encoding="utf-8", errors="replace") for file in files)
