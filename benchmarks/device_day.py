"""All that is to be measured on a GPU, as few commands for a machine that is lent for minutes and has no network.

    python benchmarks/device_day.py pack             # here: wheels for that machine, in parts, below out/device_day
    python benchmarks/device_day.py keep NUMBER      # there, for each part: it is put aside
    python benchmarks/device_day.py run              # there: Tauloop's kernels, in ten minutes; results below $OUT
    python benchmarks/device_day.py run --beside     # there: the other engines, in ten minutes

Parts are small enough to be sent one by one (`out/device_day/NUMBER` is to be carried with the
working tree). That machine has Python 3.12 with CuPy, NumPy, SciPy, PyTorch, JAX, nvcc and
nvdisasm; it gets CasADi (its core alone), MuJoCo, Warp, GRiD and what these need. `run` unpacks
them and starts `bench_gpu.py`: arrays of JAX and PyTorch go in and out of a kernel, all kernels are
compiled on all cores and measured, then the other engines. What is known is kept after each
measurement.
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
#: Where parts lie here, and what is put aside there.
PARTS, ASIDE = ROOT / "out" / "device_day", Path(tempfile.gettempdir()) / "device_day"
#: Bytes of a part.
LARGEST = 40 * 2**20
#: What that machine has not, and what that needs. MuJoCo wants both of its parts of one version.
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
#: What of CasADi's wheel is used: neither solvers nor their libraries.
CASADI = ("__init__.py", "casadi.py", "_casadi.so", "libcasadi.so.3.7", "tools")
#: The arm that GRiD is measured with beside a shipped one; a URDF that is not part of the project.
TX40 = ROOT.parent / "shared" / "data" / "tx40" / "tx40_nomesh.urdf"
#: Seconds of `run`.
LONGEST = 570


def pack() -> int:
    """Download, prune, compress and cut; says what to call."""
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
    print("at once behind it: python3 benchmarks/device_day.py run --beside")
    return 0


def pruned(site: Path) -> None:
    """Leave out what no measurement reads."""
    for path in (site / "casadi").iterdir():
        if path.name not in CASADI:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name in ("warp/tests", "warp/examples", "warp/bin/warp-clang.so", "bin"):
        path = site / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def keep(number: int) -> int:
    """Put a part aside, where the next call of the machine finds it."""
    ASIDE.mkdir(exist_ok=True)
    shutil.copy(PARTS / str(number) / "part", ASIDE / f"part{number:03d}")
    return 0


def run(beside: bool) -> int:
    """Unpack, check, compile and measure Tauloop's kernels, or the other engines; the outcome of the last."""
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
        ["--no-kernels", "--beside", "--trees", *trees] if beside else ["--prepare", "--arrays"]
    )
    options = [*wanted, "--json", str(results / ("beside.json" if beside else "gpu.json"))]
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
    commands.add_parser("run").add_argument("--beside", action="store_true")
    chosen = parser.parse_args()
    if chosen.command == "keep":
        return keep(chosen.number)
    return pack() if chosen.command == "pack" else run(chosen.beside)


if __name__ == "__main__":
    sys.exit(main())
