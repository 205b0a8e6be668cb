"""Variation of inputs from sample to sample: distributions, grids and lists.

Sample i depends only on the seed and on i. Random numbers between 0 and 1 are drawn in blocks. The
generator of a block depends only on the seed, the index of the input and the number of the block.
Any sample can therefore be drawn without the previous samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin

#: Number of samples in a block of random numbers.
SAMPLES_PER_BLOCK = 1024
#: Kinds of random variations; all other kinds are lists.
DRAWN = ("normal", "uniform")


@dataclass(frozen=True, slots=True, kw_only=True)
class VariedInput(ReprMixin):
    """The variation of one input over the samples.

    Attributes:
        name: an independent parameter of the machine; ``log``; ``options.NAME``; or
            ``options.NAME.KEY``.
        kind: "normal", "uniform" or "list".
        about: mean of a distribution, SI.
        spread: standard deviation or half-width of the distribution, SI.
        values: values of a list, in order; numbers in SI units, or texts.
        unit: SI unit of numbers; "" for dimensionless numbers and texts.

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
        """Whether the values are drawn from a distribution."""
        return self.kind in DRAWN

    def transformed(self, u: np.ndarray) -> np.ndarray:
        """Return the values (N,) of the distribution at cumulative probabilities u (N,)."""
        standardized = ndtri(u) if self.kind == "normal" else 2.0 * u - 1.0
        return np.asarray(self.about + self.spread * standardized)

    def texts(self, values: np.ndarray) -> np.ndarray:
        """Return values as texts for an option; numbers are written with their unit."""
        if values.dtype == object:
            return values
        return np.array(
            [f"{value!r} {self.unit}".rstrip() for value in values.tolist()], dtype=object
        )


def uniform_numbers(seed: int, stream: int, first: int, last: int) -> np.ndarray:
    """Return random numbers between 0 and 1 (exclusive) for samples first to last - 1.

    Args:
        seed: seed of the study.
        stream: index of the variation.
        first, last: range of samples.
    """
    blocks = range(first // SAMPLES_PER_BLOCK, -(-last // SAMPLES_PER_BLOCK))
    arrays = [_block(seed, stream, block) for block in blocks]
    begin = first - blocks.start * SAMPLES_PER_BLOCK if arrays else 0
    return np.concatenate([*arrays, np.zeros(0)])[begin : begin + last - first]


def _block(seed: int, stream: int, block: int) -> np.ndarray:
    """Return the random numbers of one block."""
    sequence = np.random.SeedSequence(seed, spawn_key=(stream, block))
    integers = np.random.Generator(np.random.Philox(sequence)).integers(
        0, 2**52, size=SAMPLES_PER_BLOCK, dtype=np.uint64
    )
    return (integers.astype(float) + 0.5) / 2.0**52


def count_of(variations: Sequence[VariedInput], samples: int) -> int:
    """Return the number of samples, which is `samples` for each combination of list entries."""
    list_lengths = [len(item.values) for item in variations if not item.is_drawn]
    return math.prod(list_lengths, start=samples if variations else 1)


def inputs_of(
    variations: Sequence[VariedInput],
    seed: int,
    first: int,
    last: int,
    design: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Return the inputs of samples first to last - 1, by name.

    Consecutive samples have different combinations of list entries; the last list changes fastest.

    Args:
        variations: varied inputs.
        seed: seed of the study.
        first, last: range of samples.
        design: values between 0 and 1 of all samples, (N, number of random inputs), which replace
            random numbers.
    """
    inputs: dict[str, np.ndarray] = {}
    lists = [item for item in variations if not item.is_drawn]
    lengths = tuple(len(item.values) for item in lists)
    combination = np.arange(first, last) % max(int(np.prod(lengths)), 1)
    positions = np.unravel_index(combination, lengths or (1,))
    position_of = {item.name: position for item, position in zip(lists, positions, strict=False)}
    column = 0
    for stream, item in enumerate(variations):
        if item.is_drawn:
            if design is None:
                u = uniform_numbers(seed, stream, first, last)
            else:
                u = design[first:last, column]
            inputs[item.name] = item.transformed(u)
            column += 1
        else:
            dtype = float if all(isinstance(value, float) for value in item.values) else object
            inputs[item.name] = np.array(item.values, dtype=dtype)[position_of[item.name]]
    return inputs
