"""Tab completion: machines, and names of their parameters and actuators.

Completion reads machine files without deriving equations, so that CasADi is not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

#: Commands whose first argument is a machine.
TAKES_MACHINE = frozenset(
    {
        *("demo", "show", "check", "view", "convert", "fk", "ik", "jacobian", "modes"),
        *("workspace", "dynamics", "stiffness", "vibration", "simulate"),
        *("identify", "calibrate", "verify"),
        *("plan stroke", "plan path", "plan transfer", "plan cycle", "plan excitation"),
        *("plan poses", "export c", "export controller", "export fmu", "export linuxcnc"),
        *("export ros2", "export transmission", "run plant", "run stream", "control follow"),
        "control collision",
        *("accuracy backlash", "accuracy ballbar", "accuracy thermal", "accuracy tolerances"),
        "accuracy compliance",
        *("model equations", "model reduce"),
        *("accuracy compensate", "accuracy compensation-table", "export compensation"),
        *("model cost", "model base-parameters", "model link-parameters", "log forces"),
        *("log describe", "log drive-stiffness", "log track", "design motors", "design certify"),
        "design tolerances",
    }
)
#: Extensions of machine files.
MACHINE_EXTENSIONS = (".yaml", ".urdf", ".xml", ".mjcf")


def machines(incomplete: str) -> list[str]:
    """Return matching shipped machines, files and folders."""
    from tauloop.mechanism.shipped import shipped_machines

    return [*_with_prefix(shipped_machines(), incomplete), *_files(incomplete)]


def sources(incomplete: str) -> list[str]:
    """Return matching templates, machines, files and folders for a new machine."""
    from tauloop.authoring.templates import TEMPLATES

    return list(dict.fromkeys([*_with_prefix(TEMPLATES, incomplete), *machines(incomplete)]))


def parameters(ctx: Any, incomplete: str) -> list[str]:
    """Return matching parameters of the command's machine or template, also after a comma."""
    if source := ctx.params.get("source"):
        from tauloop.authoring import dimensions

        return _list_completions(lambda: [item.name for item in dimensions(source)], incomplete)
    return _list_completions(lambda: [item.name for item in _machine(ctx).parameters], incomplete)


def actuators(ctx: Any, incomplete: str) -> list[str]:
    """Return matching actuators of the command's machine, also after a comma."""
    return _list_completions(lambda: [item.name for item in _machine(ctx).actuators], incomplete)


#: Completion function for each kind of names in options (`tauloop.common.options.Option.names`).
COMPLETIONS: Mapping[str, Callable[[Any, str], list[str]]] = {
    "parameters": parameters,
    "actuators": actuators,
}


def _machine(ctx: Any) -> Any:
    """Return the machine that the incomplete command line names."""
    from tauloop.formats import load

    # While an option has no value yet, the parser leaves later arguments in `ctx.args`.
    unread = (word for word in ctx.args if not word.startswith("-"))
    return load(str(ctx.params.get("machine") or next(unread, "")))


def _list_completions(names: Callable[[], Iterable[str]], incomplete: str) -> list[str]:
    """Return completions of the last name in a list with commas; none for an invalid machine.

    Args:
        names: function that returns all names; it may raise an error of Tauloop.
        incomplete: the incomplete list.
    """
    from tauloop.common.errors import TauloopError

    before, comma, last = incomplete.rpartition(",")
    try:
        return [f"{before}{comma}{name}" for name in _with_prefix(names(), last)]
    except TauloopError:
        return []


def _with_prefix(names: Iterable[str], incomplete: str) -> list[str]:
    """Return the names that begin with the incomplete word."""
    return [name for name in names if name.startswith(incomplete)]


def _files(incomplete: str) -> list[str]:
    """Return matching machine files and folders; hidden ones only after a dot."""
    folder = incomplete.rpartition("/")[0] + "/" if "/" in incomplete else ""
    try:
        paths = sorted(Path(folder or ".").iterdir())
    except OSError:
        return []
    names: list[str] = []
    for path in paths:
        if path.is_dir():
            names.append(f"{folder}{path.name}/")
        elif path.suffix.lower() in MACHINE_EXTENSIONS:
            names.append(f"{folder}{path.name}")
    return [
        name
        for name in _with_prefix(names, incomplete)
        if not name.startswith(".") or incomplete.startswith(".")
    ]
