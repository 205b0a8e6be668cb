"""Compiled functions of a machine file; a cached function loads in milliseconds.

The name of a record in the cache is a hash of everything that defines a function: the bytes of the
file, the options, Tauloop itself, the compiler and the processor. The record contains the signature
of the function and the name of its library. Any change gives another name, so a record is never out
of date. A damaged record is written again. A machine that needs other inputs (drive-line files, or
packages with a format, a joint or a formulation) has no record.

Imports are local to the code that builds a function, because loading a cached function needs
neither SciPy nor the readers of files.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.common.errors import EngineError, InputError, Problem
from tauloop.common.keywords import keywords
from tauloop.common.options import Options
from tauloop.common.records import dataclass
from tauloop.common.result import content
from tauloop.compiler.c.calling.cache import cache_folder, is_intact, read_record, write_record
from tauloop.compiler.c.calling.caller import prepare
from tauloop.compiler.c.calling.compiled import CompiledFunction
from tauloop.compiler.c.calling.compiler import compiler_stamp, file_stamp, processor_stamp
from tauloop.compiler.c.calling.library import Library
from tauloop.compiler.c.calling.signature import CPort, CSignature
from tauloop.equations.assembly.freedoms.locks import DEFAULT_LOCKS, Locks
from tauloop.equations.ports import PLATFORM, Entry
from tauloop.formats.options import ImportOptions
from tauloop.mechanism.shipped import GALLERY, SHIPPED

if TYPE_CHECKING:
    from tauloop.compiler.expressions import ProgramSpec
    from tauloop.model.model import MachineSource

#: Packages that define a function's text.
_VERSIONED_PACKAGES = ("common", "mechanism", "formats", "equations", "compiler", "model")
#: Libraries on which the text depends.
_LIBRARIES = ("casadi", "numpy", "scipy")
_SOURCES = (".py", ".c")
_PACKAGE = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionOptions(Options):
    """Options of a function in addition to the machine.

    Attributes:
        coordinates: coordinates in which the motion is given.
        free: independent parameters that are an input named `theta`; the others are constants.
        formulation: name of one of `equations.formulations.FORMULATIONS`.
        locks: locked degrees of freedom.
        side: side file of a URDF.
        imported: options for reading a description of another tool.
        threads: number of threads for a batch; it does not affect the results.

    Examples:
        >>> import tauloop as tl
        >>> tl.FunctionOptions(free=("plate_mass",)).free
        ('plate_mass',)
    """

    coordinates: Entry = PLATFORM
    free: tuple[str, ...] = ()
    formulation: str = "newton-euler"
    locks: Locks = DEFAULT_LOCKS
    side: Path | None = None
    imported: ImportOptions | None = None
    threads: int = 1


@keywords(FunctionOptions)
def load_function(
    machine: MachineSource,
    function: str = "inverse_dynamics",
    outputs: Sequence[str] = (),
    *,
    options: FunctionOptions | None = None,
    folder: Path | None = None,
) -> CompiledFunction:
    """Return machine code of a function of a machine, for use in a controller.

    The code is taken from the cache if possible. `function(q, v, a)` checks a motion and its
    health. Bound calls (`CompiledFunction.bind`) start with the reference pose and the nominal
    parameters and check nothing, so the caller must read their health (docs/generated-code.md).

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine; for a name or a
            path, cached code is found without reading the machine.
        function: "inverse_dynamics", "forward_dynamics", "regressor", "kinematics", "momentum",
            "momentum_forces" or "momentum_observer".
        outputs: names of outputs, such as ("force",); the default is the first output.
        options: options of the function.
        folder: folder of the cache; the default is the user's cache.

    Raises:
        InputError: an unknown function or output.
        DescriptionError, AssemblyError: the machine is wrong.
        EngineError: no compiler was found, or the compiler fails.

    Examples:
        >>> import tauloop as tl
        >>> forces = tl.load_function("four_bar", outputs=("force",))
        >>> arrays, call = forces.bind()
        >>> call()
        >>> arrays["force"].shape
        (1,)
    """
    options = FunctionOptions() if options is None else options
    outputs = tuple(outputs)
    folder = cache_folder() if folder is None else folder
    if not isinstance(machine, str | Path):
        _require_no_reading(options)
        return _make(machine, function, outputs, options, folder)[0]
    path = _file_of(machine)
    record = folder / f"{_key(path, function, outputs, options)}.json"
    loaded = _read(record, options.threads)
    if loaded is None:
        loaded, is_cacheable = _make(machine, function, outputs, options, folder)
        # without a record, the next process only has to build the function again
        with suppress(InputError):
            if is_cacheable:
                _write(record, loaded)
    return loaded


def _require_no_reading(options: FunctionOptions) -> None:
    """Raise an error for options of reading a file if the machine is not a file."""
    stated = [name for name in ("side", "imported") if getattr(options, name) is not None]
    InputError.raise_if_any(
        Problem(name, "applies to files, but the machine was already read", "omit it")
        for name in stated
    )


def _make(
    machine: MachineSource,
    function: str,
    outputs: tuple[str, ...],
    options: FunctionOptions,
    folder: Path,
) -> tuple[CompiledFunction, bool]:
    """Build the model and compile a function; ports have the values of the reference pose.

    Returns:
        The function; and whether the record's name covers all its inputs. It does not cover other
        packages, or the drive-line files that a machine file may name.
    """
    from tauloop.compiler.c.calling.evaluator import default_evaluator
    from tauloop.equations.formulations import FORMULATIONS
    from tauloop.formats.library import FORMATS, format_of, load, mechanism_of
    from tauloop.mechanism.model import JOINT_KINDS
    from tauloop.model.c_ports import c_ports
    from tauloop.model.model import Model

    spec = _exportable(function)
    helper = Thread(target=prepare)  # compile while the model is built, which uses only one core
    helper.start()
    if isinstance(machine, str | Path):
        mechanism = load(machine, options.side, options=options.imported)
    else:
        mechanism = mechanism_of(machine)
    model = Model(
        mechanism,
        options.free,
        formulation=options.formulation,
        locks=options.locks,
        evaluator=default_evaluator(threads=options.threads, folder=folder),
    )
    motion = model.functions(options.coordinates)
    made = motion.compiled(spec, outputs or spec.outputs[:1])
    helper.join()
    ports = c_ports(model, motion)
    inputs, results = made.function.inputs, made.function.outputs
    signature = CSignature(
        name=made.function.name,
        inputs=tuple(ports.get(port.name, port) for port in inputs),
        outputs=tuple(ports.get(port.name, port) for port in results),
    )
    nominal = {port.name: made.nominal[port.name] for port in inputs if port.name in made.nominal}
    is_cacheable = (
        isinstance(machine, str | Path)
        and made.library is not None
        and model.formulation in FORMULATIONS
        and format_of(_file_of(machine)).name in FORMATS.builtin
        and all(JOINT_KINDS[joint.kind].placement is None for joint in mechanism.joints)
        and (
            all(a.drive is None for a in mechanism.actuators)
            or b"file" not in _bytes(_file_of(machine))
        )
        and not _may_include(_file_of(machine))
    )
    return made.renamed(signature, nominal, options.threads), is_cacheable


def _file_of(machine: str | Path) -> Path:
    """Return the file of a machine; for a shipped machine without importing readers of formats."""
    if isinstance(machine, str) and machine.replace("_", "").isalnum():
        for folder in (SHIPPED, GALLERY):
            path = folder / f"{machine}.yaml"
            if path.is_file():
                return path
    from tauloop.formats.library import source_path

    return source_path(machine)


def _may_include(path: Path) -> bool:
    """Return whether a foreign description may read further files: includes, meshes, xacro."""
    if path.suffix.lower() in (".yaml", ".yml"):
        return False
    content = _bytes(path)
    return path.suffix.lower() == ".xacro" or any(
        word in content for word in (b"include", b"<mesh", b"xacro")
    )


def _exportable(function: str) -> ProgramSpec:
    from tauloop.compiler.catalogue import EXPORTABLE
    from tauloop.mechanism.suggestions import unknown_names

    InputError.raise_if_any(unknown_names([function], EXPORTABLE, "{!r} is unknown", "function"))
    return EXPORTABLE[function]


def _key(path: Path, function: str, outputs: tuple[str, ...], options: FunctionOptions) -> str:
    """Return a hash of everything that defines a function."""
    side = b"" if options.side is None else _bytes(Path(options.side))
    parts = (
        hashlib.sha256(_bytes(path)).hexdigest(),
        hashlib.sha256(side).hexdigest(),
        path.suffix.lower(),
        content((function, outputs, replace(options, side=None))),
        *_toolkit(),
        *compiler_stamp(),
        *processor_stamp(),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _bytes(path: Path) -> bytes:
    """Return a file's content; empty if it cannot be read, which its reader reports later."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _toolkit() -> list[str]:
    """Return the identity of Tauloop and its libraries, from the time and size of their files.

    A library is identified by the first file of its import, which every installation writes.
    """
    parts = [str(_PACKAGE), sys.version]
    for library in _LIBRARIES:
        place = importlib.util.find_spec(library)
        if place is not None and place.origin is not None:
            parts.append(f"{place.origin} {file_stamp(place.origin)}")
    for package in _VERSIONED_PACKAGES:
        for folder, inner, names in os.walk(_PACKAGE / package):
            inner[:] = sorted(set(inner) - {"__pycache__"})
            parts += [
                f"{name} {file_stamp(f'{folder}/{name}')}"
                for name in sorted(names)
                if name.endswith(_SOURCES)
            ]
    return parts


def _read(record: Path, threads: int) -> CompiledFunction | None:
    """Return the function of a record; None if the record or its library is missing or damaged."""
    try:
        content = read_record(record)
        library = record.parent / Path(content["library"]).name
        if not is_intact(library):
            return None
        signature = CSignature(
            name=content["name"],
            inputs=tuple(_port(port) for port in content["inputs"]),
            outputs=tuple(_port(port) for port in content["outputs"]),
        )
        nominal = {
            name: np.array(values, dtype=float) for name, values in content["nominal"].items()
        }
        return CompiledFunction(signature, Library(library), nominal, threads)
    except (EngineError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _port(content: dict[str, Any]) -> CPort:
    return CPort(
        **{**content, "columns": tuple(content["columns"]), "units": tuple(content["units"])}
    )


def _write(record: Path, made: CompiledFunction) -> None:
    function = made.function
    assert made.library is not None
    write_record(
        record,
        {
            "library": made.library.name,
            "name": function.name,
            "inputs": [asdict(port) for port in function.inputs],
            "outputs": [asdict(port) for port in function.outputs],
            "nominal": {name: values.tolist() for name, values in made.nominal.items()},
        },
    )
