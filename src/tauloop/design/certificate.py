"""Files of proofs: the machine, the claims, and every box with its unknowns as exact numbers."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.errors import InputError, Problem
from tauloop.common.files import write_text
from tauloop.common.records import dataclass
from tauloop.formats.library import dumps
from tauloop.model import Model

#: Name and version of the format.
FORMAT = "tauloop-certificate/1"
#: Keys of a file.
KEYS = (
    "format",
    "machine",
    "text_sha256",
    "claims",
    "axes",
    "start",
    "varied",
    "lower",
    "upper",
    "unknowns",
    "path",
    "boxes",
    "solutions",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofClaims:
    """Claims of a certificate about every pose of its box.

    Attributes:
        parallel, serial, constraint: smallest distances from singularities.
        length: length by which moments of the unit rows are divided, m.
        clearance: smallest distance between the surfaces of rods, m; 0 for no claim.
        cone: largest angle (half-angle of a cone) between each rod and its direction at the
            reference pose, rad; None for no claim.
        drawing: whether drawing ranges (plot ranges of coordinates) count as stops.
        tolerances: largest absolute deviations of parameters by name, SI.
        cones: largest half-angles by joint or end of a rod, rad; they replace `cone` at these ends.
        radii: radii of rods by name, m.
        forces: whether forces and tensions at rest stay within the limits of the machine.
        wrench: ranges of the six components of the wrench at the tool, N and N m; empty without a
            wrench.
        limits: largest errors of the tool by direction, m and rad.
        encoders: errors of actuators by name, rad or m.
        round: axes of a cylinder, whose diameters are the ranges; empty for a box.
    """

    parallel: float
    serial: float
    constraint: float
    length: float
    clearance: float
    cone: float | None
    drawing: bool
    tolerances: dict[str, float]
    cones: dict[str, float] = field(default_factory=dict)
    radii: dict[str, float] = field(default_factory=dict)
    forces: bool = False
    wrench: tuple[tuple[float, float], ...] = ()
    limits: dict[str, float] = field(default_factory=dict)
    encoders: dict[str, float] = field(default_factory=dict)
    round: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Contents of a certificate file.

    Attributes:
        machine: name of the machine.
        text_sha256: hash of the machine's text.
        claims: the claims about every pose.
        axes: names of all axes of a pose.
        start: values (m,) of the axes; they apply to the axes that do not vary.
        varied: indices of the axes that vary.
        lower, upper: ranges of these axes.
        unknowns: names of the unknowns.
        cuts: fractions at which the straight path from the reference to the center of the box is cut
            into pieces.
        path: unknowns at the centers of the pieces.
        level, index: the boxes (N, k): along each axis from index / 2^level to
            (index + 1) / 2^level of the range.
        solutions: unknowns at the centers of the boxes (N, n).
    """

    machine: str
    text_sha256: str
    claims: ProofClaims
    axes: tuple[str, ...]
    start: np.ndarray
    varied: tuple[int, ...]
    lower: np.ndarray
    upper: np.ndarray
    unknowns: tuple[str, ...]
    cuts: np.ndarray
    path: np.ndarray
    level: np.ndarray
    index: np.ndarray
    solutions: np.ndarray


def text_hash(model: Model) -> str:
    """Return the hash of a machine's text with all parameter values."""
    mechanism = model.mechanism
    values = json.dumps(dict(sorted(mechanism.parameters.values.items())))
    return hashlib.sha256((dumps(mechanism) + values).encode()).hexdigest()


def write_proof(path: str | Path, proof: Proof) -> Path:
    """Write a proof to a temporary file, which is then renamed.

    Returns:
        The path.

    Raises:
        InputError: the folder does not exist or is not writable.
    """
    claims = proof.claims
    contents: dict[str, Any] = {
        "format": FORMAT,
        "machine": proof.machine,
        "text_sha256": proof.text_sha256,
        "claims": {name: getattr(claims, name) for name in ProofClaims.__slots__},
        "axes": list(proof.axes),
        "start": proof.start.tolist(),
        "varied": list(proof.varied),
        "lower": proof.lower.tolist(),
        "upper": proof.upper.tolist(),
        "unknowns": list(proof.unknowns),
        "path": {"cuts": proof.cuts.tolist(), "solutions": proof.path.tolist()},
        "boxes": np.stack([proof.level, proof.index], axis=1).tolist(),
        "solutions": proof.solutions.tolist(),
    }
    return write_text(Path(path), json.dumps(contents) + "\n")


def read_proof(path: str | Path) -> Proof:
    """Return the proof in a file.

    Raises:
        InputError: the file is missing, not a certificate, or has wrong contents.
    """
    try:
        contents = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(contents, dict) or contents.get("format") != FORMAT:
            raise InputError.of(
                str(path),
                f"not a certificate ({FORMAT})",
                "give a file that `tauloop design certify` wrote",
            )
        missing = [key for key in KEYS if key not in contents]
        if missing:
            what = f"lacks {', '.join(missing)}"
            raise InputError.of(str(path), what, "write the certificate again")
        return _proof(contents)
    except OSError as error:
        raise InputError(
            Problem(
                where="path",
                what=f"{path} cannot be read: {error.strerror}",
                remedy="give the path of a readable file",
            )
        ) from error
    except (AttributeError, TypeError, ValueError, KeyError, OverflowError) as error:
        raise InputError.of(
            str(path), f"damaged certificate ({error})", "write the certificate again"
        ) from error


def _claims_in(contents: dict[str, Any]) -> ProofClaims:
    """Return the claims in a file.

    Raises:
        TypeError, ValueError: a claim is unknown, or a value is not a finite number.
    """
    claims = dict(contents)
    for name in ("tolerances", "cones", "radii", "limits", "encoders"):
        claims[name] = {str(k): _finite(v) for k, v in claims.get(name, {}).items()}
    for name in ("parallel", "serial", "constraint", "length", "clearance"):
        claims[name] = _finite(claims[name])
    claims["wrench"] = tuple((_finite(a), _finite(b)) for a, b in claims.get("wrench", ()))
    if len(claims["wrench"]) not in (0, 6):
        raise ValueError("a wrench has six ranges")
    claims["round"] = tuple(map(str, claims.get("round", ())))
    if claims["cone"] is not None:
        claims["cone"] = _finite(claims["cone"])
    return ProofClaims(**claims)


def _finite(value: Any) -> float:
    """Return a finite number.

    Raises:
        TypeError, ValueError: the value is not a finite number.
    """
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} in the claims")
    return number


def _proof(contents: dict[str, Any]) -> Proof:
    """Return the proof from the contents of a file."""
    k, n = len(contents["varied"]), len(contents["unknowns"])
    boxes = np.array(contents["boxes"], dtype=np.int64).reshape(-1, 2, k)
    return Proof(
        machine=str(contents["machine"]),
        text_sha256=str(contents["text_sha256"]),
        claims=_claims_in(contents["claims"]),
        axes=tuple(contents["axes"]),
        start=np.array(contents["start"], dtype=float),
        varied=tuple(int(i) for i in contents["varied"]),
        lower=np.array(contents["lower"], dtype=float),
        upper=np.array(contents["upper"], dtype=float),
        unknowns=tuple(contents["unknowns"]),
        cuts=np.array(contents["path"]["cuts"], dtype=float),
        path=_rows_of(contents["path"]["solutions"], n),
        level=boxes[:, 0],
        index=boxes[:, 1],
        solutions=_rows_of(contents["solutions"], n),
    )


def _rows_of(values: list[Any], n: int) -> np.ndarray:
    """Return an array (N, n), also for n = 0."""
    return np.array(values, dtype=float).reshape(len(values), n)
