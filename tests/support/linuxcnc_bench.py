"""LinuxCNC itself: components built by its own tool, loaded, called, and run in its simulation as an ordinary user."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

#: Components of these tests, in C.
SOURCES = Path(__file__).parents[1] / "export"
#: What Debian's packages linuxcnc-uspace and linuxcnc-uspace-dev bring.
PROGRAMS = ("linuxcnc", "halcompile", "halcmd", "runuser")
#: The ordinary user: LinuxCNC refuses root. There is always one of that name, and it owns nothing.
USER = "nobody"
MODULES = Path("/usr/lib/linuxcnc/modules")
#: Numbers of a row of the component that probes.
ROW = 19


def reason_not_to_run() -> str:
    """What is missing here, or nothing."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"LinuxCNC is absent ({', '.join(missing)}): apt-get install linuxcnc-uspace linuxcnc-uspace-dev"
    return (
        ""
        if os.geteuid() == 0
        else "needs root, to install components and to run LinuxCNC as another user"
    )


@dataclass(frozen=True)
class Probed:
    """Answers of a kinematics module to poses: statuses (N,), joints (N, 9), the world (N, 6), ns for a call (N,)."""

    inverse: np.ndarray
    joints: np.ndarray
    forward: np.ndarray
    world: np.ndarray
    inverse_ns: np.ndarray
    forward_ns: np.ndarray


class Bench:
    """A folder of the ordinary user, in which LinuxCNC runs; components are removed in the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._installed: list[Path] = []

    def install(self, source: Path) -> None:
        """Build a component by LinuxCNC's own tool."""
        target = MODULES / f"{source.stem}.so"
        assert not target.exists() or target in self._installed, f"{target} is somebody else's"
        done = subprocess.run(
            ["halcompile", "--install", source.name],
            cwd=source.parent,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning" not in done.stderr
        self._installed.append(target)

    def remove(self) -> None:
        """Take away what was installed."""
        for target in self._installed:
            target.unlink(missing_ok=True)

    def run(self, *words: str, seconds: float = 120.0) -> tuple[int, str]:
        """A command as the ordinary user: its exit code, and what it says."""
        shutil.chown(self.folder, USER)
        for path in self.folder.rglob("*"):
            shutil.chown(path, USER)
        # runuser has a home of its own
        settings = (f"HOME={self.folder}", "PATH=/usr/bin:/bin", "RUNTESTS=1")
        process = subprocess.Popen(
            [str(shutil.which("runuser")), "-u", USER, "--", "env", "-i", *settings, *words],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            text, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            text, _ = process.communicate()
            text += "\nstopped: it took too long"
        return process.returncode, text

    def probe(self, module: str, world: np.ndarray, setp: Sequence[str] = ()) -> Probed:
        """All poses (N, 6) through a kinematics module that LinuxCNC has loaded, its own or ours.

        Args:
            module: its name.
            world: mm and deg.
            setp: pins with values, such as "lineardeltakins.L 340".
        """
        np.ascontiguousarray(world, dtype=float).tofile(self.folder / "world.bin")
        lines = [f"loadrt {module}", *(f"setp {line}" for line in setp)]
        lines += [
            f"loadrt tl_probe in={self.folder}/world.bin out={self.folder}/probed.bin",
            "unload all",
        ]
        (self.folder / "probe.hal").write_text("\n".join([*lines, ""]))
        (self.folder / "probed.bin").unlink(missing_ok=True)
        code, text = self.run("halcmd", "-f", "probe.hal", seconds=60.0)
        assert code == 0, text
        rows = np.fromfile(self.folder / "probed.bin").reshape(-1, ROW)
        assert len(rows) == len(world), text
        return Probed(
            inverse=rows[:, 9],
            joints=rows[:, :9],
            forward=rows[:, 16],
            world=rows[:, 10:16],
            inverse_ns=rows[:, 17],
            forward_ns=rows[:, 18],
        )


@contextmanager
def bench() -> Iterator[Bench]:
    """A bench that nobody else uses at the same time: there is one LinuxCNC on a computer."""
    with open("/tmp/tauloop-linuxcnc.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with tempfile.TemporaryDirectory(prefix="tauloop-linuxcnc-", dir=_open_to_all()) as folder:
            Path(folder).chmod(0o755)
            own = Bench(Path(folder))
            try:
                own.install(_copied(Path(folder), "tl_probe.c"))
                own.install(_copied(Path(folder), "tl_record.c"))
                yield own
            finally:
                own.remove()


def _open_to_all() -> Path:
    """The nearest folder above that of the tests' temporary files that an ordinary user may walk into, too."""
    above = Path(tempfile.gettempdir()).resolve()
    walled = [
        folder for folder in (above, *above.parents) if not folder.stat().st_mode & stat.S_IXOTH
    ]
    return walled[-1].parent if walled else above


def _copied(folder: Path, name: str) -> Path:
    return Path(shutil.copy(SOURCES / name, folder / name))
