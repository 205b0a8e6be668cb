"""What is attacked: each reader with good files to damage, and the one question: did it read, or refuse by name?"""

from __future__ import annotations

import atexit
import functools
import io
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from core_machines import CORE_MACHINES
from extras import extra

from tauloop.authoring import convert
from tauloop.cli.terminal.screen import visible
from tauloop.common.errors import TauloopError
from tauloop.export.fmu import FmuOptions, export_fmu
from tauloop.export.fmu.archive import archive, library_path
from tauloop.export.fmu.foreign import ForeignFmu
from tauloop.formats import load, machine_path
from tauloop.formats.mjcf.writer import write_mjcf
from tauloop.formats.sdf.writer import write_sdf
from tauloop.formats.urdf.writer import write_urdf

ROOT = Path(__file__).resolve().parents[2]
FOUND = Path(__file__).parent / "found"
#: What a message never holds where it is shown: lines and tabs alone are no printable characters.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A reader, the extension of its files, and good files."""

    name: str
    ending: str
    read: Callable[[Path], object]
    texts: Callable[[], tuple[bytes, ...]]

    @functools.cache  # noqa: B019 (targets live as long as the process)
    def corpus(self) -> tuple[bytes, ...]:
        """The good files: those of `texts` that are read."""
        return tuple(text for text in self.texts() if outcome(self, text) == "read")


class FaultFound(AssertionError):
    """A reader answered hostile input with anything but a value or a named refusal."""


def outcome(target: Target, data: bytes) -> str:
    """ "read" or "refused".

    Raises:
        FaultFound: another exception came, or a refusal that says nothing or carries control
            characters.
    """
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / f"input{target.ending}"
        path.write_bytes(data)
        try:
            target.read(path)
        except TauloopError as refusal:
            if not refusal.problems or not all(problem.what for problem in refusal.problems):
                raise FaultFound(f"{target.name}: a refusal that says nothing") from refusal
            if _CONTROL.search(visible(str(refusal))):
                raise FaultFound(
                    f"{target.name}: control characters in {str(refusal)[:200]!r}"
                ) from refusal
            return "refused"
        except Exception as error:
            raise FaultFound(f"{target.name}: {type(error).__name__}: {error}"[:500]) from error
    return "read"


def _texts(*patterns: str) -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for pattern in patterns for path in sorted(ROOT.glob(pattern)))


@functools.cache
def _machine_files() -> tuple[bytes, ...]:
    shipped = tuple(machine_path(name).read_bytes() for name in CORE_MACHINES)
    return (*shipped, *_texts("tests/cases/*.yaml", "tests/*.yaml", "examples/elastic/*.yaml"))


@functools.cache
def _written() -> Path:
    """A folder of shipped machines in other tools' formats, as our own writers put them."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in ("five_bar", "delta", "rcid", "four_bar"):
        write_mjcf(load(name), folder / f"{name}.xml")
        write_urdf(load(name), folder / f"{name}.urdf")
        write_sdf(load(name), folder / f"{name}.sdf")
    return folder


def _klipper_files() -> tuple[bytes, ...]:
    """Return Klipper's configurations of a delta with probed heights, and of a rotary delta."""
    kossel = (ROOT / "examples" / "printers" / "kossel.cfg").read_bytes()
    return (kossel, *_printer_files(".cfg"))


def _printer_files(ending: str) -> tuple[bytes, ...]:
    """Return configurations that firmware of printers can hold."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"printer{ending}"
        convert("linear_delta", path)
        return (path.read_bytes(),)


def _converted(ending: str) -> tuple[bytes, ...]:
    written = tuple(path.read_bytes() for path in sorted(_written().glob(f"*{ending}")))
    return (*written, *_texts(f"tests/cases/*{ending}"))


def _read_urdf(path: Path) -> object:
    return load(path, _written() / "five_bar.urdf.side.yaml")


def _read_side(path: Path) -> object:
    return load(_written() / "five_bar.urdf", path)


def _side_files() -> tuple[bytes, ...]:
    return (*_converted(".side.yaml"), *_texts("examples/tx40/side.yaml"))


def _columns() -> dict[str, np.ndarray]:
    t = np.linspace(0.0, 0.2, 21)
    return {
        "time [s]": t,
        "position.left [rad]": 0.1 * np.sin(20 * t),
        "position.right [deg]": 5 * np.cos(20 * t),
        "force.left [N m]": np.cos(3 * t),
        "force.right [N m]": np.sin(3 * t),
    }


@functools.cache
def _csv_files() -> tuple[bytes, ...]:
    columns = _columns()
    rows = np.column_stack(list(columns.values()))
    texts = []
    for separator in (",", ";", "\t"):
        lines = [
            separator.join(columns),
            *(separator.join(f"{x:.6g}" for x in row) for row in rows),
        ]
        texts.append("\n".join(lines).encode())
    return tuple(texts)


@functools.cache
def _parquet_files() -> tuple[bytes, ...]:
    pa, pq = extra("pyarrow"), extra("pyarrow.parquet")

    texts = []
    for codec in ("none", "snappy"):
        stream = io.BytesIO()
        pq.write_table(pa.table(_columns()), stream, compression=codec)
        texts.append(stream.getvalue())
    return tuple(texts)


@functools.cache
def _mat_files() -> tuple[bytes, ...]:
    from scipy.io import savemat

    names = {f"c{i}": values for i, values in enumerate(_columns().values())}
    texts = []
    for content, packed in ((names, False), (names, True), ({"log": names}, True)):
        stream = io.BytesIO()
        savemat(stream, content, do_compression=packed)
        texts.append(stream.getvalue())
    return tuple(texts)


@functools.cache
def _measurement_tables() -> tuple[bytes, ...]:
    header = [
        *(f"encoder.tower{i}.motor [mm]" for i in (1, 2, 3)),
        *(f"measured.{axis} [mm]" for axis in "xyz"),
    ]
    rows = [f"{10 * i}.5,{7 * i},{3 * i},{i}.25,{2 * i},-{i}" for i in range(12)]
    return ("\n".join([",".join(header), *rows]).encode(),)


@functools.cache
def _hdf5_files() -> tuple[bytes, ...]:
    h5py = extra("h5py")

    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        for i, values in enumerate(_columns().values()):
            file.create_dataset(f"c{i}", data=values, compression="gzip" if i % 2 else None)
    return (stream.getvalue(),)


@functools.cache
def _bags(ending: str) -> tuple[bytes, ...]:
    extra("rosbags")
    from tauloop.logs import read_log, write_log

    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "log.csv").write_bytes(_csv_files()[0])
    log = read_log(folder / "log.csv")
    some = [log, log.drop_vars("position.left"), log.drop_vars(["position.left", "position.right"])]
    return tuple(
        write_log(folder / f"{k}{ending}", part).read_bytes() for k, part in enumerate(some)
    )


def _read_log(path: Path) -> object:
    from tauloop.logs import read_log

    return read_log(path)


def _read_columns(path: Path) -> object:
    from tauloop.logs import LogFile, read_log

    columns = {"position": {"left": "c1", "right": "c2"}, "force": {"left": "c3", "right": "c4"}}
    return read_log(
        LogFile(
            path=path,
            columns=columns,
            units={"c0": "s", "position": "rad", "force": "N m"},
            time="c0",
        )
    )


def _read_recording(path: Path) -> object:
    from tauloop.logs.recording import load_recording

    return load_recording(path)


def _read_measurements(path: Path) -> object:
    from tauloop.calibration.measurements.reading import read_measurements

    return read_measurements(path, load("linear_delta"), noise=1e-5, folder=_probed())


@functools.cache
def _probed() -> Path:
    """A folder with the table that the examples' descriptions name; its figures are made up."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    steps = np.random.default_rng(0).integers(20_000, 30_000, size=(41, 3))
    np.savetxt(folder / "stable_positions_steps_41pts.csv", steps, delimiter=",", fmt="%d")
    return folder


def _read_drive(path: Path) -> object:
    from tauloop.drives.reader import load_drive

    return load_drive(path)


#: A serial arm that needs no side file.
_ARM = b"""<robot name="arm">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.1 0 0" rpy="0 0 0.1"/><mass value="2"/>
    <inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="fore"><inertial><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="50" velocity="3"/><dynamics damping="0.1" friction="0.2"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="fore"/><origin xyz="0.3 0 0"/>
    <axis xyz="0 1 0"/></joint>
</robot>
"""


def _open_fmu(path: Path) -> object:
    """A description packed as an FMU with empty libraries, and opened; nothing is loaded."""
    packed = path.with_suffix(".fmu")
    places = [library_path(version, "five_bar_plant") for version in ("2", "3")]
    packed.write_bytes(
        archive({"modelDescription.xml": path.read_bytes(), **dict.fromkeys(places, b"")})
    )
    with ForeignFmu(path=packed) as fmu:
        return fmu.starts(dict.fromkeys([*fmu.variables][:3], "1"))


def _descriptions() -> tuple[bytes, ...]:
    """Of FMUs of both versions."""
    extra("fmpy")
    made = (
        export_fmu(load("five_bar"), FmuOptions(fmi_version=version, binary=False))
        for version in ("2", "3")
    )
    return tuple(str(export.files["modelDescription.xml"]).encode() for export in made)


TARGETS = {
    target.name: target
    for target in (
        Target(name="machine", ending=".yaml", read=load, texts=_machine_files),
        Target(name="mjcf", ending=".xml", read=load, texts=lambda: _converted(".xml")),
        Target(
            name="urdf", ending=".urdf", read=_read_urdf, texts=lambda: _converted("five_bar.urdf")
        ),
        Target(name="sdf", ending=".sdf", read=load, texts=lambda: _converted(".sdf")),
        Target(
            name="plain-urdf", ending=".urdf", read=load, texts=lambda: (_ARM, *_converted(".urdf"))
        ),
        Target(name="klipper", ending=".cfg", read=load, texts=_klipper_files),
        Target(name="marlin", ending=".h", read=load, texts=lambda: _printer_files(".h")),
        Target(name="reprap", ending=".g", read=load, texts=lambda: _printer_files(".g")),
        Target(name="side", ending=".yaml", read=_read_side, texts=_side_files),
        Target(name="csv", ending=".csv", read=_read_log, texts=_csv_files),
        Target(name="parquet", ending=".parquet", read=_read_log, texts=_parquet_files),
        Target(name="mat", ending=".mat", read=_read_columns, texts=_mat_files),
        Target(name="mcap", ending=".mcap", read=_read_log, texts=lambda: _bags(".mcap")),
        Target(name="db3", ending=".db3", read=_read_log, texts=lambda: _bags(".db3")),
        Target(name="fmu", ending=".xml", read=_open_fmu, texts=_descriptions),
        Target(name="hdf5", ending=".h5", read=_read_columns, texts=_hdf5_files),
        Target(
            name="recording",
            ending=".yaml",
            read=_read_recording,
            texts=lambda: _texts("examples/tx40/recording.yaml"),
        ),
        Target(
            name="measurements",
            ending=".yaml",
            read=_read_measurements,
            texts=lambda: _texts("examples/delta_printer/*.yaml"),
        ),
        Target(name="table", ending=".csv", read=_read_measurements, texts=_measurement_tables),
        Target(
            name="drive",
            ending=".yaml",
            read=_read_drive,
            texts=lambda: _texts("src/tauloop/drives/lines/*.yaml"),
        ),
    )
}
