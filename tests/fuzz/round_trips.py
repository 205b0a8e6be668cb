"""A machine written as URDF, SDF or MJCF and read again has the forces it had, or the conversion is refused by name."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from fuzz.described_machines import described_machine
from fuzz.targets import FaultFound, Target
from tauloop.authoring import ConvertOptions, convert
from tauloop.common.errors import PoseError, TauloopError
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.formats import dumps, load, loads
from tauloop.kinematics import random_states
from tauloop.mechanism.model import Freedom, Mechanism
from tauloop.model import Model

#: The formats that machines are written in, by the extension of their files.
ENDINGS = {"urdf": ".urdf", "sdf": ".sdf", "mjcf": ".xml"}
#: Largest difference of forces after reading back, relative to the largest force (issue 34).
SAME_FORCES = 1e-9
#: States that are compared, next to the four that `convert` compares itself.
STATES = 6
#: Losses that a format has no place for, as its notes state them; such a conversion is doubtful.
NAMED_LOSSES = re.compile(
    r"cannot be represented|not written|drive line|SDF rejects|is impossible|is not applied|"
    r"different losses and springs"
)


def machine_text(seed: int) -> bytes | None:
    """Return the machine file of a seed; None where it does not make a machine that assembles."""
    try:
        machine = described_machine(seed)
        Model(machine, evaluator=Interpreted())
    except TauloopError:
        return None
    return dumps(machine).encode()


def _target(format_name: str, ending: str) -> Target:
    """Return the round trip through a format as what is done with a machine file."""

    def read(path: Path) -> object:
        return converted(load(path), path.with_name(f"written{ending}"))

    return Target(name=f"{format_name}-round-trip", ending=".yaml", read=read, texts=tuple)


#: The round trips by format: a machine file is what goes in.
ROUND_TRIPS = {name: _target(name, ending) for name, ending in ENDINGS.items()}


def round_trip(format_name: str, text: bytes) -> str:
    """Return what comes of a machine file: "same", "lossy ...", "not compared: ..." or "refused: ...".

    Raises:
        FaultFound: forces differ without a note, a refusal without a reason, or another exception.
    """
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        return converted(loads(text.decode()), Path(folder) / f"written{ENDINGS[format_name]}")


def converted(machine: Mechanism, path: Path) -> str:
    """Convert a machine to a file, read that, and compare. See `round_trip`."""
    try:
        conversion = convert(machine, path, ConvertOptions(solids=False))
    except TauloopError as refusal:
        if not refusal.problems or not all(
            item.where and item.what and item.remedy for item in refusal.problems
        ):
            raise FaultFound(f"a refusal without place, reason or remedy: {refusal}") from refusal
        if "would not be read again" in str(refusal):
            raise FaultFound(f"a file that cannot be read again: {refusal}") from refusal
        return f"refused: {signature(refusal)}"
    except Exception as error:
        raise FaultFound(f"{type(error).__name__}: {error}") from error
    bad = [str(item) for item in conversion.diagnostics if not item.is_good]
    if bad:
        plain = without_named_losses(machine)
        if plain == machine or not any(
            NAMED_LOSSES.search(note) for note in conversion.written.notes
        ):
            raise FaultFound(f"{bad[0]}; notes: {conversion.written.notes}")
        return f"lossy; without what the notes name: {converted(plain, path)}"
    unknown = [item.name for item in conversion.diagnostics if item.value is None]
    if unknown:
        return re.sub(r".*\((not compared: .*)\)", r"\1", unknown[0])[:120]
    try:
        back = load(path, conversion.written.side)
        difference = largest_difference(machine, back, conversion.written.names)
    except PoseError as error:
        return f"no states: {signature(error)}"
    except Exception as error:
        raise FaultFound(f"after reading back: {type(error).__name__}: {error}") from error
    if difference > SAME_FORCES:
        raise FaultFound(
            f"convert compared four states, but forces elsewhere differ by {difference:.1e}"
        )
    return "same"


def without_named_losses(machine: Mechanism) -> Mechanism:
    """Return the machine without what formats have no place for, and state in their notes."""
    rotations = {f"{joint.name}.{word}" for joint in machine.joints for word in ("wx", "wy", "wz")}

    def change(name: str, freedom: Freedom) -> Freedom:
        return Freedom() if name in rotations else freedom

    return replace(machine.with_freedoms(change), losses=())


def largest_difference(before: Mechanism, after: Mechanism, renamed: Mapping[str, str]) -> float:
    """Return the largest difference of the forces on the independent coordinates, of the largest force.

    Raises:
        PoseError: no regular state was found.
    """
    models = [Model(machine, evaluator=Interpreted()) for machine in (before, after)]
    states = random_states(models[0], STATES, np.random.default_rng(0), step=0.02)
    first, second = (model.platform for model in models)
    position = [renamed.get(name, name) for name in first.ports.position.columns]
    velocity = [renamed.get(name, name) for name in first.ports.velocity.columns]
    if sorted(position) != sorted(second.ports.position.columns):
        return 0.0  # `convert` has compared by the actuators
    x_columns = [position.index(name) for name in second.ports.position.columns]
    v_columns = [velocity.index(name) for name in second.ports.velocity.columns]
    x, v, a = states.position, states.velocity, states.acceleration
    expected = np.einsum("kij,kj->ki", first.mass_matrix(x), a) + first.bias(x, v)
    x, v, a = x[:, x_columns], v[:, v_columns], a[:, v_columns]
    actual = np.einsum("kij,kj->ki", second.mass_matrix(x), a) + second.bias(x, v)
    differences = np.abs(actual - expected[:, v_columns]).max(axis=0)
    largest = np.abs(expected).max()
    return float(differences.max() / max(largest, 1e-300))


def signature(error: TauloopError) -> str:
    """Return what an error states, without names and numbers."""
    problem = error.problems[0]
    return re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?|'[^']*'", "#", problem.what)[:140]
