"""``python tools/install_sizes.py``: measure installations of a wheel and write the table of the README.

Each installation is a new virtual environment that gets the wheel with one set of extras. Its size is
that of all installed packages except pip and setuptools, which every environment has. The time of
`tauloop check delta` is the first one, without compiled code and without cached bytecode of the
interpreter itself. ``--check`` only compares the README with the limits and the installed packages.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BEGIN = "<!-- measured by tools/install_sizes.py: begin -->"
END = "<!-- measured by tools/install_sizes.py: end -->"
#: Largest size of an installation, MB, by its extras.
LIMITS = {"": 450.0, "all": 1600.0}
#: Packages of every environment.
TOOLS = ("pip", "setuptools", "pkg_resources", "_distutils_hack")


class Installation(NamedTuple):
    """A measured installation: size in MB, and times in s."""

    size: float
    install_time: float
    first_check_time: float


def size_of(paths: Iterable[Path]) -> float:
    """Return the size of files, MB."""
    return sum(path.lstat().st_size for path in paths if path.is_file()) / 1e6


def install(wheel: Path, extras: str, folder: Path) -> Installation:
    """Install a wheel in a new environment and measure it."""
    environment = folder / (extras or "core")
    python = environment / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    target = f"{wheel}[{extras}]" if extras else str(wheel)
    begin = time.monotonic()
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", target], check=True)
    installed = time.monotonic()
    home = {"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_CACHE_HOME": str(environment)}
    command = [str(environment / "bin" / "tauloop"), "check", "delta"]
    subprocess.run(command, env=home, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    checked = time.monotonic()
    packages = next(environment.glob("lib/python*/site-packages"))
    files = (path for path in packages.rglob("*") if not _is_tool(path.relative_to(packages)))
    return Installation(size_of(files), installed - begin, checked - installed)


def _is_tool(path: Path) -> bool:
    return re.split(r"[-.]", path.parts[0])[0] in TOOLS


def table(measured: dict[str, Installation]) -> str:
    """Return the table for the README."""
    lines = [
        "| installation | size | installing | first `tauloop check delta` |",
        "|---|---|---|---|",
    ]
    for extras, installation in measured.items():
        name = f"tauloop[{extras}]" if extras else "tauloop"
        size = f"{installation.size:.0f} MB"
        times = f"{installation.install_time:.0f} s | {installation.first_check_time:.1f} s"
        lines.append(f"| `{name}` | {size} | {times} |")
    today = datetime.date.today().isoformat()
    cores = os.cpu_count()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    note = f"Measured on Linux with Python {version} and {cores} cores, {today}."
    return "\n".join([*lines, "", note])


def stated_sizes(text: str) -> dict[str, float]:
    """Return the sizes in MB that the README states, by extras."""
    part = text.partition(BEGIN)[2].partition(END)[0]
    rows = re.findall(r"^\| `tauloop(?:\[(\w+)\])?` \| (\d+) MB ", part, re.M)
    return {extras: float(size) for extras, size in rows}


def requirements(extras: str) -> list[str]:
    """Return the names of all packages that an installation of Tauloop needs here.

    Raises:
        PackageNotFoundError: one of them is not installed.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    wanted = [Requirement(line) for line in project["dependencies"] + optional.get(extras, [])]
    found: dict[str, set[str]] = {}
    while wanted:
        need = wanted.pop()
        if need.name == "tauloop":
            wanted += [Requirement(line) for extra in need.extras for line in optional[extra]]
            continue
        if need.marker is not None and not need.marker.evaluate({"extra": ""}):
            continue
        known = found.setdefault(need.name, set())
        new = ({""} | need.extras) - known
        known |= new
        if new:
            wanted += _needs_of(need.name, new)
    return sorted(found)


def _needs_of(name: str, extras: set[str]) -> Iterator[Requirement]:
    """Yield what an installed package needs here with one of some extras, without markers."""
    for line in distribution(name).requires or []:
        need = Requirement(line)
        marker, need.marker = need.marker, None
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
            yield need


def installed_size(extras: str) -> float | None:
    """Return the size of an installation by the packages that are here, MB; None if one is missing.

    Tauloop itself counts by its sources, and twice for their bytecode.
    """
    try:
        names = requirements(extras)
    except PackageNotFoundError:
        return None
    return sum(map(_package_size, names)) + 2.0 * _size_of_sources()


@functools.cache
def _package_size(name: str) -> float:
    """Return the size of an installed package, MB."""
    return size_of(Path(str(path.locate())) for path in distribution(name).files or [])


@functools.cache
def _size_of_sources() -> float:
    return size_of(path for path in (ROOT / "src").rglob("*") if path.suffix != ".pyc")


def write(measured: dict[str, Installation]) -> None:
    """Write the table of the README."""
    text = README.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    README.write_text(f"{head}{BEGIN}\n\n{table(measured)}\n\n{END}{tail}", encoding="utf-8")


def problems() -> list[str]:
    """Return what is wrong with the sizes that the README states."""
    stated = stated_sizes(README.read_text(encoding="utf-8"))
    if stated.keys() != LIMITS.keys():
        return ["the README does not state all installations"]
    found = [
        f"{extras}: above {LIMITS[extras]:.0f} MB"
        for extras in LIMITS
        if stated[extras] >= LIMITS[extras]
    ]
    for extras, size in stated.items():
        here = installed_size(extras)
        if here is not None and abs(here - size) > 0.1 * size:
            found.append(
                f"{extras}: the README states {size:.0f} MB; packages here have {here:.0f}"
            )
    return found


def main() -> None:
    """Measure the installations and write the README, or check it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare, and measure nothing")
    if not parser.parse_args().check:
        with tempfile.TemporaryDirectory() as empty:
            folder = Path(empty)
            build = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
            subprocess.run([sys.executable, *build, str(ROOT)], check=True)
            wheel = next(folder.glob("*.whl"))
            write({extras: install(wheel, extras, folder) for extras in LIMITS})
    if found := problems():
        raise SystemExit("\n".join(found))


if __name__ == "__main__":
    main()
