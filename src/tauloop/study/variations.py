"""What varies from sample to sample: draws from distributions, grids and lists. Sample i depends on seed and i alone.

Numbers between 0 and 1 are drawn in blocks, each by a generator of its own that the seed, the
variation and the number of the block give; a sample has its place in its block. So any sample is
drawn without those before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin

#: Samples of a block of draws.
BLOCK = 1024
#: Kinds of variations that are drawn; the others are lists.
DRAWN = ("normal", "uniform")


@dataclass(frozen=True, slots=True, kw_only=True)
class VariedInput(ReprMixin):
    """What one input of the calculation is, from sample to sample.

    Attributes:
        name: a leaf parameter of the machine; ``log``; ``options.NAME``; or ``options.NAME.KEY``.
        kind: "normal", "uniform" or "list".
        about: middle of a distribution, SI.
        spread: standard deviation, or half of the width, SI.
        values: of a list, in order: numbers in SI units or texts.
        unit: SI unit of numbers, "" for pure ones and texts.

    Examples:
        >>> from tauloop.study import VariedInput
        >>> VariedInput(name="arm_length", kind="normal", about=0.26, spread=1e-5).is_drawn
        True
    """

    name: str
    kind: str
    about: float = 0.0
    spread: float = 0.0
    values: tuple[Any, ...] = ()
    unit: str = ""

    @property
    def is_drawn(self) -> bool:
        """Whether it is drawn from a distribution."""
        return self.kind in DRAWN

    def transformed(self, u: np.ndarray) -> np.ndarray:
        """Values at numbers between 0 and 1, by the inverse of the distribution."""
        share = ndtri(u) if self.kind == "normal" else 2.0 * u - 1.0
        return np.asarray(self.about + self.spread * share)

    def texts(self, values: np.ndarray) -> np.ndarray:
        """Values as an option reads them, numbers with their unit."""
        if values.dtype == object:
            return values
        return np.array(
            [f"{value!r} {self.unit}".rstrip() for value in values.tolist()], dtype=object
        )


def uniform_numbers(seed: int, stream: int, first: int, last: int) -> np.ndarray:
    """Numbers between 0 and 1, neither of which is among them, of samples first to last - 1.

    Args:
        seed: of the study.
        stream: number of the variation.
        first, last: samples.
    """
    blocks = range(first // BLOCK, -(-last // BLOCK))
    drawn = [_block(seed, stream, block) for block in blocks]
    begin = first - blocks.start * BLOCK if drawn else 0
    return np.concatenate([*drawn, np.zeros(0)])[begin : begin + last - first]


def _block(seed: int, stream: int, block: int) -> np.ndarray:
    sequence = np.random.SeedSequence(seed, spawn_key=(stream, block))
    whole = np.random.Generator(np.random.Philox(sequence)).integers(
        0, 2**52, size=BLOCK, dtype=np.uint64
    )
    return (whole.astype(float) + 0.5) / 2.0**52


def count_of(variations: Sequence[VariedInput], samples: int) -> int:
    """Samples of a study: of each combination of the entries of lists so many; one where nothing varies."""
    return math.prod(
        [len(item.values) for item in variations if not item.is_drawn],
        start=samples if variations else 1,
    )


def inputs_of(
    variations: Sequence[VariedInput],
    seed: int,
    first: int,
    last: int,
    design: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """The inputs of samples first to last - 1, by name; those of lists change with every sample, the last one first.

    Args:
        variations: what varies.
        seed: of the study.
        first, last: samples.
        design: numbers between 0 and 1 of all samples (N, drawn) that take the place of draws.
    """
    inputs: dict[str, np.ndarray] = {}
    lists = [item for item in variations if not item.is_drawn]
    places = np.unravel_index(
        np.arange(first, last) % max(int(np.prod([len(item.values) for item in lists])), 1),
        tuple(len(item.values) for item in lists) or (1,),
    )
    of_list = {item.name: place for item, place in zip(lists, places, strict=False)}
    column = 0
    for stream, item in enumerate(variations):
        if item.is_drawn:
            u = (
                uniform_numbers(seed, stream, first, last)
                if design is None
                else design[first:last, column]
            )
            inputs[item.name] = item.transformed(u)
            column += 1
        else:
            kind = float if all(isinstance(value, float) for value in item.values) else object
            inputs[item.name] = np.array(item.values, dtype=kind)[of_list[item.name]]
    return inputs
