"""Machines as FMUs: what they compute behind the Functional Mock-up Interface, for simulators and real-time targets."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from tauloop.common.keywords import keywords
from tauloop.common.options import Options, listed, option
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import provenance
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.parameter_check import parameter_hash, parameter_source
from tauloop.compiler.c.printing.source import c_name, comment, number
from tauloop.export.c.exported_files import ExportedFiles, written_files
from tauloop.export.controller.options import ControllerOptions
from tauloop.export.fmu.archive import archive, compiled, library_place
from tauloop.export.fmu.blocks import inverse_dynamics_functions, kinematics_functions
from tauloop.export.fmu.controller import controller_functions
from tauloop.export.fmu.description import FmuDescription, build_description
from tauloop.export.fmu.plant import FmuFunctions, plant_functions, quoted
from tauloop.export.fmu.variables import FmuVariables
from tauloop.integrate.integrators import MOST_STEPS, DormandPrince, Integrator, Radau
from tauloop.model import Model
from tauloop.model.model import MachineSource, modelled

#: What an FMU may be of a machine.
KINDS = ("plant", "inverse_dynamics", "kinematics", "controller")
#: Versions of the standard.
VERSIONS = ("2", "3")
#: Absolute tolerance (SI) over the relative one.
ABSOLUTE = 0.1
#: What only this file may see is hidden, and what printers of code leave unused is no news.
_ALONE = (
    "#if defined __GNUC__ && !defined _WIN32",
    "#pragma GCC visibility push(hidden)",
    "#endif",
    "#ifdef __GNUC__",
    '#pragma GCC diagnostic ignored "-Wunused-function"',
    '#pragma GCC diagnostic ignored "-Wunused-parameter"',
    "#endif",
)
#: Headers that stand in front of what only this file may see.
_HEADERS = (
    "<math.h>",
    "<stdbool.h>",
    "<stddef.h>",
    "<stdint.h>",
    "<stdio.h>",
    "<stdlib.h>",
    "<string.h>",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FmuOptions(Options):
    """What of a machine becomes an FMU, and how.

    Attributes:
        kind: what it computes: plant, forward dynamics from actuator forces (or, with drive lines,
            motor torques); inverse_dynamics, feed-forward; kinematics, both ways; controller, what
            `export controller` writes.
        version: of the FMI standard.
        free: parameters that importers may change, beside those of drive lines; with commas
            between.
        name: of file and model; the machine's and the kind without it.
        tolerance: relative tolerance of an integration step in co-simulation; importers may ask for
            another.
        stiff: integrate by implicit steps in co-simulation, for stiff machines.
        binary: compile a library for this platform; without it importers compile the sources.

    Examples:
        >>> import tauloop as tl
        >>> tl.FmuOptions(version="2").kind
        'plant'
    """

    kind: str = option("plant", choices=KINDS)
    version: str = option("3", choices=VERSIONS, flag="--fmi-version")
    free: tuple[str, ...] = option(
        (), read=listed, names="parameters", flag="--free-parameters", metavar="NAMES"
    )
    name: str | None = option(None, flag="")
    tolerance: float = option(1e-9, least=1e-13, most=1e-2)
    stiff: bool = False
    binary: bool = True

    @property
    def integrator(self) -> Integrator:
        """Of co-simulation."""
        kind = Radau if self.stiff else DormandPrince
        return kind(rtol=self.tolerance, atol=ABSOLUTE * self.tolerance)


@dataclass(frozen=True, slots=True, kw_only=True)
class FmuExport(ExportedFiles):
    """A finished FMU; `name` is that of the model, and `files` are what the archive holds.

    Attributes:
        version: of the standard.
        kind: what it computes.
        parameter_hash: of all parameters, those of the machine and of a controller; the description
            has it too.
        variables: all its variables.
    """

    version: str = field(metadata=json_keys("fmi"))
    kind: str
    parameter_hash: str
    variables: FmuVariables = field(metadata=OMITTED)

    @property
    @in_json("name")
    def model_name(self) -> str:
        """Name of the model."""
        return self.name

    @property
    @in_json()
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self._names("parameter")

    @property
    @in_json()
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return self._names("input")

    @property
    @in_json()
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self._names("output")

    @property
    @in_json()
    def states(self) -> int:
        """Number of states."""
        return len(self.variables.states)

    @property
    @in_json()
    def event_indicators(self) -> int:
        """Number of event indicators."""
        return len(self.variables.guards)

    @property
    @in_json()
    def contents(self) -> dict[str, str]:
        """SHA-256 of every file in the archive."""
        return {
            name: hashlib.sha256(_bytes(content)).hexdigest()
            for name, content in self.files.items()
        }

    def _names(self, causality: str) -> tuple[str, ...]:
        return tuple(v.name for v in self.variables.all if v.causality == causality)


@keywords(FmuOptions)
def export_fmu(
    machine: MachineSource,
    folder: str | Path | None = None,
    options: FmuOptions | None = None,
    *,
    controller: ControllerOptions | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> FmuExport:
    """A machine as an FMU for model exchange and co-simulation; the same machine gives the same bytes.

    Inputs and outputs have the machine file's names and SI units. Co-simulation steps by Tauloop's
    own integrator inside; model exchange has the independent coordinates as states (index reduced),
    and the switches of drive lines as events.

    Args:
        machine: a mechanism, or its model, whose free parameters stay parameters.
        folder: where ``NAME.fmu`` is written (it is made where it is missing).
        options: what it computes, for which version.
        controller: of the kind controller: its law, numbers and rate.
        cache: of compiled code; the user's own without it.
        progress: called with what is done and what there is to do.

    Raises:
        InputError: unknown parameters, a name that gives no C identifier, or a controller that the
            machine cannot have.
        AssemblyError: the machine does not assemble as described.
        EngineError: there is no compiler, or it fails.

    Examples:
        >>> import tauloop as tl
        >>> fmu = tl.export_fmu("five_bar", version="2", binary=False)
        >>> sorted(fmu.files)
        ['modelDescription.xml', 'sources/five_bar_plant.c']
    """
    options = options or FmuOptions()
    model = modelled(machine).with_free_parameters(options.free)
    stages = Stages(progress, 3)
    name = c_name(
        f"{model.mechanism.name}_{options.kind}" if options.name is None else options.name
    )
    functions = _functions(model, options, controller or ControllerOptions(), name)
    stages.done()
    values = dict(functions.values) or {p.name: p.value for p in model.mechanism.parameters}
    body = _source(functions, options, name, values)
    stages.done()
    token = hashlib.sha256((body + repr(functions.variables)).encode()).hexdigest()[:32]
    source = body.replace(_TOKEN, quoted(token), 1)
    description = FmuDescription(
        version=options.version,
        identifier=name,
        token=token,
        meaning=" ".join(model.mechanism.description.split()),
        tool=f"Tauloop {provenance(packages=(), options={}).versions['tauloop']}",
        tolerance=options.tolerance,
        period=functions.period,
        hash=parameter_hash(values),
        variables=functions.variables,
    )
    files: dict[str, str | bytes] = {
        "modelDescription.xml": description.text(),
        f"sources/{name}.c": source,
    }
    if options.version == "3":
        files["sources/buildDescription.xml"] = build_description(name)
    if options.binary:
        files[library_place(options.version, name)] = compiled(source, cache)
    stages.done()
    written = () if folder is None else written_files({f"{name}.fmu": archive(files)}, Path(folder))
    return FmuExport(
        name=name,
        version=options.version,
        kind=options.kind,
        parameter_hash=parameter_hash(values),
        variables=functions.variables,
        files=files,
        written=written,
    )


def _functions(
    model: Model, options: FmuOptions, controller: ControllerOptions, name: str
) -> FmuFunctions:
    if options.kind == "inverse_dynamics":
        return inverse_dynamics_functions(model)
    if options.kind == "kinematics":
        return kinematics_functions(model)
    if options.kind == "controller":
        return controller_functions(model, controller, name)
    return plant_functions(model, options.integrator.method.atol)


#: Stands for the token, which is a hash of the text around it.
_TOKEN = '"token"'


def _source(
    functions: FmuFunctions, options: FmuOptions, name: str, values: Mapping[str, float]
) -> str:
    """The C file of an FMU, with a mark in the place of its token."""
    method = options.integrator.method
    first, rtol, atol, longest = (number(min(value, 1e300)) for value in method.numbers)
    sizes = {
        "TL_FIRST": first,
        "TL_RTOL": rtol,
        "TL_ATOL": atol,
        "TL_LONGEST": longest,
        "TL_MOST_STEPS": MOST_STEPS,
    }
    package, face = "tauloop.export.fmu", f"fmi{options.version}"
    loop = "\n".join(
        [
            f"#define TL_TOKEN {_TOKEN}",
            f"#define TL_DAMAGED {name}_check_parameters(0x{parameter_hash(values)}ULL)",
            *(f"#define {key} {value}" for key, value in sizes.items()),
            functions.tables(),
            *(
                c_file(package, file)
                for file in ("instance.c", "explain.c", f"{face}_types.c", "faces.c", f"{face}.c")
            ),
        ]
    )
    whole = functions.system.source(
        method.tableau, loop, known=functions.known, further=functions.further
    )
    return "\n".join(
        [
            f"/* {comment(f'{name}: made by Tauloop, do not edit')} */",
            *(f"#include {header}" for header in _HEADERS),
            *_ALONE,
            functions.front or parameter_source(name, values),
            whole,
            "#if defined __GNUC__ && !defined _WIN32",
            "#pragma GCC visibility pop",
            "#endif",
            "",
        ]
    )


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content
