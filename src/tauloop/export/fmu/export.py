"""Export of machines as FMUs (Functional Mock-up Interface) for simulators and real time."""

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
from tauloop.common.result import tauloop_version
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.parameter_check import parameter_hash, parameter_source
from tauloop.compiler.c.printing.source import c_name, comment, number
from tauloop.export.c.exported_files import ExportedFiles, written_files
from tauloop.export.controller.options import ControllerOptions
from tauloop.export.fmu.archive import archive, compiled, library_path
from tauloop.export.fmu.blocks import inverse_dynamics_functions, kinematics_functions
from tauloop.export.fmu.controller import controller_functions
from tauloop.export.fmu.description import FmuDescription, build_description
from tauloop.export.fmu.plant import FmuFunctions, plant_functions, quoted
from tauloop.export.fmu.variables import FmuVariables
from tauloop.integrate.integrators import DEFAULT_MAX_STEPS, DormandPrince, Integrator, Radau
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled

#: Functions that an FMU of a machine may have.
FMU_KINDS = ("plant", "inverse_dynamics", "kinematics", "controller")
#: Versions of the standard.
VERSIONS = ("2", "3")
#: Absolute tolerance (SI) divided by the relative tolerance.
ABSOLUTE_TOLERANCE_RATIO = 0.1
#: Names inside the file are hidden. Generated code may have unused functions and parameters.
_PRIVATE_CODE = (
    "#if defined __GNUC__ && !defined _WIN32",
    "#pragma GCC visibility push(hidden)",
    "#endif",
    "#ifdef __GNUC__",
    '#pragma GCC diagnostic ignored "-Wunused-function"',
    '#pragma GCC diagnostic ignored "-Wunused-parameter"',
    "#endif",
)
#: Headers, included before the hidden names.
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
    """Options of an exported FMU.

    Attributes:
        kind: function of the FMU: plant (forward dynamics from actuator forces or, with drive
            lines, motor torques), inverse_dynamics (feed-forward forces), kinematics (inverse and
            forward), controller (the code of `export controller`).
        fmi_version: version of the FMI standard.
        free_parameters: parameters that importers may change, in addition to those of drive lines,
            separated by commas.
        name: name of file and model; default: the machine's name followed by the kind.
        tolerance: relative tolerance of an integration step in co-simulation; importers may request
            a different one.
        stiff: integrate by implicit steps in co-simulation, for stiff machines.
        binary: compile a library for this platform; without it importers compile the sources.

    Examples:
        >>> import tauloop as tl
        >>> tl.FmuOptions(fmi_version="2").kind
        'plant'
    """

    kind: str = option("plant", choices=FMU_KINDS)
    fmi_version: str = option("3", choices=VERSIONS)
    free_parameters: tuple[str, ...] = option((), read=listed, names="parameters", metavar="NAMES")
    name: str | None = option(None, flag="")
    tolerance: float = option(1e-9, least=1e-13, most=1e-2)
    stiff: bool = False
    binary: bool = True

    @property
    def integrator(self) -> Integrator:
        """Return the integrator of co-simulation."""
        integrator = Radau if self.stiff else DormandPrince
        return integrator(rtol=self.tolerance, atol=ABSOLUTE_TOLERANCE_RATIO * self.tolerance)


@dataclass(frozen=True, slots=True, kw_only=True)
class FmuExport(ExportedFiles):
    """An exported FMU; `name` is the name of the model, `files` are the contents of the archive.

    Attributes:
        version: version of the standard.
        kind: function of the FMU.
        parameter_hash: hash of all parameters of the machine and of a controller. The model
            description also contains it.
        variables: all variables.
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
        """SHA-256 of every file in the archive, by name."""
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
    """Export a machine as an FMU for model exchange and co-simulation.

    The same machine gives the same bytes. Inputs and outputs have the machine file's names and SI
    units. Co-simulation uses Tauloop's own integrator inside the FMU. In model exchange the
    independent coordinates are states (index reduced), and switches of drive lines are events.

    Args:
        machine: a mechanism or its model, whose free parameters stay parameters.
        folder: folder for ``NAME.fmu``; it is created if missing.
        options: function and version of the FMU.
        controller: law, gains and rate of an FMU of the kind controller.
        cache: folder of the cache of compiled code; default: the user's cache.
        progress: called with the completed and the total number of stages.

    Returns:
        The export: contents of the files by name, and the written FMU.

    Raises:
        InputError: a parameter is unknown, the name cannot be turned into a C identifier, or the
            controller does not suit the machine.
        AssemblyError: the machine cannot be assembled as described.
        EngineError: no C compiler was found, or it fails.

    Examples:
        >>> import tauloop as tl
        >>> fmu = tl.export_fmu("five_bar", fmi_version="2", binary=False)
        >>> sorted(fmu.files)
        ['modelDescription.xml', 'sources/five_bar_plant.c']
    """
    options = options or FmuOptions()
    model = modeled(machine).with_free_parameters(options.free_parameters)
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
    source = body.replace(_TOKEN_LITERAL, quoted(token), 1)
    description = FmuDescription(
        version=options.fmi_version,
        identifier=name,
        token=token,
        meaning=" ".join(model.mechanism.description.split()),
        tool=f"Tauloop {tauloop_version()}",
        tolerance=options.tolerance,
        period=functions.period,
        hash=parameter_hash(values),
        variables=functions.variables,
    )
    files: dict[str, str | bytes] = {
        "modelDescription.xml": description.text(),
        f"sources/{name}.c": source,
    }
    if options.fmi_version == "3":
        files["sources/buildDescription.xml"] = build_description(name)
    if options.binary:
        files[library_path(options.fmi_version, name)] = compiled(source, cache)
    stages.done()
    written = () if folder is None else written_files({f"{name}.fmu": archive(files)}, Path(folder))
    return FmuExport(
        name=name,
        version=options.fmi_version,
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


#: Placeholder of the token, which is a hash of the text around it.
_TOKEN_LITERAL = '"token"'


def _source(
    functions: FmuFunctions, options: FmuOptions, name: str, values: Mapping[str, float]
) -> str:
    """Return the C file of an FMU, with a placeholder for its token."""
    method = options.integrator.method
    first, rtol, atol, max_step = (number(min(value, 1e300)) for value in method.numbers)
    sizes = {
        "TL_FIRST": first,
        "TL_RTOL": rtol,
        "TL_ATOL": atol,
        "TL_LONGEST": max_step,
        "TL_DEFAULT_MAX_STEPS": DEFAULT_MAX_STEPS,
    }
    package, interface = "tauloop.export.fmu", f"fmi{options.fmi_version}"
    names = ("instance.c", "explain.c", f"{interface}_types.c", "faces.c", f"{interface}.c")
    loop = "\n".join(
        [
            f"#define TL_TOKEN {_TOKEN_LITERAL}",
            f"#define TL_DAMAGED {name}_check_parameters(0x{parameter_hash(values)}ULL)",
            *(f"#define {key} {value}" for key, value in sizes.items()),
            functions.tables(),
            *(c_file(package, file) for file in names),
        ]
    )
    system_text = functions.system.source(
        method.tableau, loop, known=functions.known, further=functions.further
    )
    return "\n".join(
        [
            f"/* {comment(f'{name}: generated by Tauloop, do not edit')} */",
            *(f"#include {header}" for header in _HEADERS),
            *_PRIVATE_CODE,
            functions.front or parameter_source(name, values),
            system_text,
            "#if defined __GNUC__ && !defined _WIN32",
            "#pragma GCC visibility pop",
            "#endif",
            "",
        ]
    )


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content
