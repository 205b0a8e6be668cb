"""All measurements on a GPU in a few commands, for a machine that is lent for minutes and has no network.

    python benchmarks/device_day.py pack             # here: wheels for that machine, in parts, in out/device_day
    python benchmarks/device_day.py keep NUMBER      # there, for each part: store it
    python benchmarks/device_day.py run              # there: Tauloop's kernels, in ten minutes; results in $OUT
    python benchmarks/device_day.py run --engines    # there: the other engines, in ten minutes

Parts are small enough to be sent one by one (carry `out/device_day/NUMBER` with the working tree).
That machine has Python 3.12 with CuPy, NumPy, SciPy, PyTorch, JAX, nvcc and nvdisasm; it gets CasADi
(its core alone), MuJoCo, Warp, GRiD and their requirements. `run` unpacks them and starts
`bench_gpu.py`: arrays of JAX and PyTorch are passed in and out of a kernel, all kernels are compiled
on all cores and measured, then the other engines. Results are written after each measurement.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Folders of the parts here, and of the stored parts there.
PARTS, ASIDE = ROOT / "out" / "device_day", Path(tempfile.gettempdir()) / "device_day"
#: Largest size of a part, bytes.
LARGEST = 40 * 2**20
#: Packages that the machine lacks, and their requirements. Both parts of MuJoCo need the same version.
WHEELS = (
    *(
        "casadi>=3.8,<4",
        "platformdirs",
        "mujoco==4.0.0",
        "mujoco-core==4.0.0",
        "mujoco-warp",
        "warp-lang",
    ),
    *("grid-rbd", "beautifulsoup4", "soupsieve", "trimesh", "threadpoolctl"),
)
PLATFORMS = (
    "manylinux_2_34",
    "manylinux_2_28",
    "manylinux_2_27",
    "manylinux_2_17",
    "manylinux2014",
    "manylinux1",
)
#: The parts of CasADi's wheel that are used: neither solvers nor their libraries.
CASADI = ("__init__.py", "casadi.py", "_casadi.so", "libcasadi.so.3.7", "tools")
#: The arm that GRiD is measured with in addition to a shipped one; a URDF outside the project.
TX40 = ROOT.parent / "shared" / "data" / "tx40" / "tx40_nomesh.urdf"
#: Time limit of `run`, s.
LONGEST = 570


def pack() -> int:
    """Download, prune, compress and cut; print the commands to run there."""
    shutil.rmtree(PARTS, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        platforms = [f"--platform={name}_x86_64" for name in PLATFORMS]
        options = [
            "--no-deps",
            "--only-binary=:all:",
            "--python-version=3.12",
            "--implementation=cp",
            *platforms,
        ]
        command = [sys.executable, "-m", "pip", "install", "-q", *options, f"--target={site}"]
        subprocess.run([*command, *WHEELS], check=True)
        pruned(site)
        if TX40.exists():
            shutil.copy(TX40, site)
        whole = Path(folder) / "whole.tar.xz"
        with tarfile.open(whole, "w:xz", preset=3) as archive:
            archive.add(site, arcname="site")
        content = whole.read_bytes()
    count = -(-len(content) // LARGEST)
    for k in range(count):
        (PARTS / str(k + 1)).mkdir(parents=True)
        (PARTS / str(k + 1) / "part").write_bytes(content[k * LARGEST : (k + 1) * LARGEST])
    for k in range(1, count + 1):
        last = " && python3 benchmarks/device_day.py run" if k == count else ""
        print(f"carry out/device_day/{k}: python3 benchmarks/device_day.py keep {k}{last}")
    print("directly afterwards: python3 benchmarks/device_day.py run --engines")
    return 0


def pruned(site: Path) -> None:
    """Remove files that no measurement reads."""
    for path in (site / "casadi").iterdir():
        if path.name not in CASADI:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name in ("warp/tests", "warp/examples", "warp/bin/warp-clang.so", "bin"):
        path = site / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def keep(number: int) -> int:
    """Store a part where the next call of the machine finds it."""
    ASIDE.mkdir(exist_ok=True)
    shutil.copy(PARTS / str(number) / "part", ASIDE / f"part{number:03d}")
    return 0


def run(engines: bool) -> int:
    """Unpack, check, compile and measure Tauloop's kernels, or the other engines; return the last exit code."""
    results = Path(os.environ.get("OUT", ASIDE / "results"))
    results.mkdir(parents=True, exist_ok=True)
    parts = sorted(ASIDE.glob("part*"))
    site = ASIDE / "site"
    with tempfile.TemporaryFile() as joined:
        for part in parts:
            joined.write(part.read_bytes())
        joined.seek(0)
        if not site.exists():
            with tarfile.open(fileobj=joined, mode="r:xz") as archive:
                archive.extractall(ASIDE, filter="data")
    paths = os.pathsep.join([str(ROOT / "src"), str(site)])
    environment = os.environ | {
        "PYTHONPATH": paths,
        "PYTHONUNBUFFERED": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    trees = ["pendulum_arm", *(str(path) for path in site.glob("tx40*.urdf"))]
    bench = ROOT / "benchmarks" / "bench_gpu.py"
    wanted = (
        ["--no-kernels", "--engines", "--trees", *trees] if engines else ["--prepare", "--arrays"]
    )
    options = [*wanted, "--json", str(results / ("engines.json" if engines else "gpu.json"))]
    command = ["timeout", str(LONGEST), sys.executable, str(bench), *options]
    with (results / "log.txt").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            log.write(line)
            log.flush()
    return process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description="A day with a GPU.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("pack")
    commands.add_parser("keep").add_argument("number", type=int)
    commands.add_parser("run").add_argument("--engines", action="store_true")
    chosen = parser.parse_args()
    if chosen.command == "keep":
        return keep(chosen.number)
    return pack() if chosen.command == "pack" else run(chosen.engines)


if __name__ == "__main__":
    sys.exit(main())
