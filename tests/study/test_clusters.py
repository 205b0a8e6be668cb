"""Studies on real workers: whatever is killed in the middle, the numbers are those of one machine, each counted once.

By night: schedulers and workers are processes of their own.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compilers
from extras import extra

import tauloop as tl
from tauloop.common.errors import EngineError
from tauloop.study import AccuracyOptions, StudyFolder, accuracy, loads_study, workers

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none here"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of Dask's own
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets to who was killed
]
SOURCES = Path(tl.__file__).parents[1]
TEXT = """
format: tauloop-study/1
machine: delta
samples: 6000
seed: 3
vary: {arm_length: {normal: 20 um}, forearm_length: {uniform: 50 um}}
compute: {result: accuracy, options: {poses: 300}}
"""
#: Time within which a process answers, s, on a machine with other work.
PATIENCE = 120.0


class Cluster:
    """A scheduler and workers on this machine's loopback."""

    def __init__(self, folder: Path, tls: tuple[str, ...] = ()) -> None:
        self.folder, self.workers, self.tls = folder, [], tls
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"{'tls' if tls else 'tcp'}://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        protocol = ("--protocol", "tls") if self.tls else ()
        self.scheduler = self._process("scheduler", "--port", str(self.port), *protocol)

    def worker(self, *, sources: Path = SOURCES, **environment: str) -> subprocess.Popen[bytes]:
        name = f"worker-{len(self.workers)}"
        options = (
            "--nthreads",
            "1",
            "--no-nanny",
            "--local-directory",
            str(self.folder / name),
            "--name",
            name,
        )
        process = self._process("worker", self.address, *options, sources=sources, **environment)
        self.workers.append(process)
        return process

    def _process(
        self, kind: str, *words: str, sources: Path = SOURCES, **environment: str
    ) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            f"distributed.cli.dask_{kind}",
            *words,
            "--host",
            "127.0.0.1",
            "--no-dashboard",
            *self.tls,
        ]
        there = {**os.environ, "PYTHONPATH": str(sources), "OMP_NUM_THREADS": "1", **environment}
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(command, env=there, stdout=log, stderr=log, cwd=self.folder)

    def wait(self, count: int) -> None:
        """Until so many workers are there."""
        with extra("distributed").Client(
            self.address, timeout=f"{PATIENCE:g}s", set_as_default=False
        ) as client:
            client.wait_for_workers(count, timeout=PATIENCE)

    def end(self) -> None:
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    extra("distributed")
    extra("pyarrow")
    made = Cluster(tmp_path)
    yield made
    made.end()


def require_the_numbers_of_one_machine(folder: Path) -> None:
    study, kept = loads_study(TEXT), StudyFolder(folder)
    np.testing.assert_array_equal(kept.column("sample"), np.arange(study.count))
    inputs = {name: kept.column(f"input.{name}") for name in study.parameters}
    direct = accuracy(tl.load("delta"), inputs, AccuracyOptions(poses=300))
    np.testing.assert_array_equal(kept.column("output.largest"), direct.largest)


def test_a_worker_and_then_the_scheduler_are_killed_in_the_middle(cluster: Cluster, tmp_path: Path):
    first, _ = cluster.worker(), cluster.worker()
    cluster.wait(2)
    options = tl.StudyOptions(scheduler=cluster.address)

    def kill(done: int, _: int) -> None:
        if done > 300 and first.poll() is None:
            first.send_signal(signal.SIGKILL)
            first.wait()
        elif done > 1500 and cluster.scheduler.poll() is None:
            cluster.scheduler.kill()

    with pytest.raises(EngineError, match="the scheduler is lost"):
        tl.run_study(loads_study(TEXT), tmp_path / "study", options, progress=kill)
    done = sum(part.last - part.first for part in StudyFolder(tmp_path / "study").parts())
    assert 1500 < done < 6000
    cluster.start()
    cluster.worker()
    cluster.wait(1)
    tl.run_study(
        loads_study(TEXT),
        tmp_path / "study",
        tl.StudyOptions(scheduler=cluster.address, resume=True),
    )
    require_the_numbers_of_one_machine(tmp_path / "study")


def test_a_worker_of_another_version_is_refused_with_both_versions(
    cluster: Cluster, tmp_path: Path
):
    other = tmp_path / "other"
    shutil.copytree(
        SOURCES / "tauloop", other / "tauloop", ignore=shutil.ignore_patterns("__pycache__")
    )
    with (other / "tauloop" / "common" / "records.py").open("a") as file:
        file.write("#: Another version.\n")
    cluster.worker(sources=other)
    cluster.wait(1)
    with pytest.raises(EngineError) as error:
        tl.run_study(
            loads_study(TEXT), tmp_path / "study", tl.StudyOptions(scheduler=cluster.address)
        )
    text = str(error.value)
    assert text.count(f"{tl.__version__}+") == 2
    assert "install the same" in text


#: As where Tauloop is not installed.
WITHOUT = """
import sys

class Without:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "tauloop":
            raise ModuleNotFoundError("No module named 'tauloop'")

sys.meta_path.insert(0, Without)
"""


def test_a_worker_without_tauloop_is_named(cluster: Cluster, tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text(WITHOUT)
    cluster.worker(sources=other)
    cluster.wait(1)
    with pytest.raises(EngineError, match=r"tcp://127.0.0.1:\d+: has no Tauloop"):
        tl.run_study(
            loads_study(TEXT), tmp_path / "study", tl.StudyOptions(scheduler=cluster.address)
        )


def test_a_worker_that_cannot_write_its_cache_is_left_and_the_others_go_on(
    cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "no_folder").write_text(
        "a file where a folder should be, as on a disk that takes nothing more"
    )
    cluster.worker(XDG_CACHE_HOME=str(tmp_path / "no_folder"))
    cluster.worker()
    cluster.wait(2)
    tl.run_study(loads_study(TEXT), tmp_path / "study", tl.StudyOptions(scheduler=cluster.address))
    require_the_numbers_of_one_machine(tmp_path / "study")
    assert sum("is excluded" in record.message for record in caplog.records) == 1


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 kB, which no compiled library fits into."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(place)], capture_output=True
    )
    if made.returncode:
        pytest.skip("a file system cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_worker_whose_disk_is_full_is_left_and_the_others_go_on(
    cluster: Cluster, tmp_path: Path, full_disk: Path
):
    cluster.worker(XDG_CACHE_HOME=str(full_disk))
    cluster.worker()
    cluster.wait(2)
    tl.run_study(loads_study(TEXT), tmp_path / "study", tl.StudyOptions(scheduler=cluster.address))
    require_the_numbers_of_one_machine(tmp_path / "study")


def test_a_study_over_tls_has_the_same_numbers_and_without_its_key_nobody_is_let_in(tmp_path: Path):
    extra("distributed")
    extra("pyarrow")
    import dask  # comes with it

    if shutil.which("openssl") is None:
        pytest.skip("needs openssl, to make a key")
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "cert.pem")
    words = (
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=localhost",
    )
    subprocess.run([*words, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    files = ("--tls-ca-file", certificate, "--tls-cert", certificate, "--tls-key", key)
    cluster = Cluster(tmp_path, files)
    tls = {"distributed.comm.tls.ca-file": certificate, "distributed.comm.require-encryption": True}
    for who in ("client", "scheduler", "worker"):
        tls |= {
            f"distributed.comm.tls.{who}.cert": certificate,
            f"distributed.comm.tls.{who}.key": key,
        }
    try:
        cluster.worker()
        with dask.config.set(tls):
            cluster.wait(1)
            tl.run_study(
                loads_study(TEXT), tmp_path / "study", tl.StudyOptions(scheduler=cluster.address)
            )
        require_the_numbers_of_one_machine(tmp_path / "study")
        plain = tl.StudyOptions(scheduler=cluster.address.replace("tls", "tcp"))
        with pytest.raises(EngineError, match="does not answer"):
            tl.run_study(loads_study(TEXT), tmp_path / "other", plain)
    finally:
        cluster.end()


def test_a_cluster_on_the_loopback_is_started_and_ended_here(tmp_path: Path):
    extra("distributed")
    extra("pyarrow")
    tl.run_study(
        loads_study(TEXT), tmp_path / "study", tl.StudyOptions(scheduler="local", workers=2)
    )
    require_the_numbers_of_one_machine(tmp_path / "study")
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    names = [
        Path(f"/proc/{child}/cmdline").read_bytes()
        for child in children
        if Path(f"/proc/{child}").exists()
    ]
    assert not [name for name in names if b"spawn_main" in name]


#: Kills the process that computes the third sample.
POISON = """
import os, signal
from tauloop.study import calculations

original = calculations.OneByOne._result

def poisoned(self, sample):
    if abs(sample["forearm_length"] - 0.44) < 1e-9:
        with open("LOG", "a") as log:
            log.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    return original(self, sample)

calculations.OneByOne._result = poisoned
"""
SWEEP = """
format: tauloop-study/1
machine: delta
vary: {forearm_length: {list: [0.48 m, 0.46 m, 0.44 m, 0.5 m, 0.52 m]}}
compute: {result: dynamics}
keep: {force: force/0/0}
"""


@pytest.mark.parametrize("scheduler", [None, "local"])
def test_a_task_that_kills_three_workers_is_set_aside_and_named(
    scheduler: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Those that were on its workers are not set aside with it."""
    for name in ("pyarrow", "distributed"):
        extra(name)
    (tmp_path / "sitecustomize.py").write_text(POISON.replace("LOG", str(tmp_path / "killed")))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(SOURCES)]))
    result = tl.run_study(
        loads_study(SWEEP), tmp_path / "study", tl.StudyOptions(workers=2, scheduler=scheduler)
    )
    assert (tmp_path / "killed").read_text() == "xxx"
    assert result.set_aside == ((2, 3),)
    assert result.samples == 4
    assert result.status.value == "doubtful"
    monkeypatch.delenv("PYTHONPATH")
    again = tl.run_study(loads_study(SWEEP), tmp_path / "study", tl.StudyOptions(resume=True))
    assert (again.samples, again.set_aside) == (5, ())


def test_a_cluster_without_workers_is_waited_for_and_then_named(
    cluster: Cluster, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(workers, "FIRST_WORKER_TIMEOUT", 3.0)
    options = tl.StudyOptions(scheduler=cluster.address)
    with pytest.raises(EngineError, match=r"no worker for 3 s\n.*dask worker tcp"):
        tl.run_study(loads_study(TEXT), tmp_path / "study", options)
    cluster.worker()
    cluster.wait(1)

    def kill(done: int, _: int) -> None:
        if done > 300:
            cluster.workers[0].kill()

    again = tl.StudyOptions(scheduler=cluster.address, resume=True)
    with pytest.raises(EngineError, match="no worker for 3 s"):
        tl.run_study(loads_study(TEXT), tmp_path / "study", again, progress=kill)
    cluster.worker()
    cluster.wait(1)
    tl.run_study(loads_study(TEXT), tmp_path / "study", again)
    require_the_numbers_of_one_machine(tmp_path / "study")


def test_a_script_whose_processes_cannot_begin_is_told_so(tmp_path: Path):
    extra("pyarrow")
    script = tmp_path / "script.py"
    text = f"tl.run_study(tl.study.loads_study({TEXT!r}), 'study', tl.StudyOptions(workers=2))"
    script.write_text(f"import tauloop as tl\n{text}\n")
    there = {**os.environ, "PYTHONPATH": str(SOURCES)}
    run = subprocess.run(
        [sys.executable, str(script)],
        env=there,
        cwd=tmp_path,
        capture_output=True,
        timeout=PATIENCE,
    )
    assert run.returncode
    assert b"every worker process exited during its start-up" in run.stderr
