"""Single precision: functions of floats over their whole ranges, and doubles written again as floats."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from compiled_machines import STRICT, compilers

from tauloop.compiler.c.calling.compiler import build, find_compiler
from tauloop.compiler.c.calling.library import Library
from tauloop.compiler.c.printing.c_helpers import pieces
from tauloop.compiler.c.printing.single import in_single, single_number
from tauloop.compiler.c.printing.source import c_text

needs_compiler = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
#: Largest errors, as the page on microcontrollers states them. Sine and cosine: as they are up to
#: 8192 rad, where the reduction's rounding shows, and in units of the last place up to 4 rad and
#: away from their zeros.
TURNED, NEAR = 1e-7, 1.6
#: Arctangent and exponential, in units of the last place.
ARCTANGENT, EXPONENTIAL = 3.0, 1.0
STRICTER = (
    *STRICT,
    "-Wconversion",
    "-Wdouble-promotion",
    "-Wfloat-conversion",
    "-ffp-contract=off",
)


def source() -> str:
    """All of them, each over an array."""
    ones = "".join(
        f"void all_{name}(size_t n, const float *x, float *y)\n"
        f"{{\n    for (size_t i = 0; i < n; ++i) y[i] = {name}(x[i]);\n}}\n"
        for name in ("tl_sinf", "tl_cosf", "tl_expf", "tl_floorf")
    )
    pairs = "".join(
        f"void all_{name}(size_t n, const float *x, const float *z, float *y)\n"
        f"{{\n    for (size_t i = 0; i < n; ++i) y[i] = {name}(x[i], z[i]);\n}}\n"
        for name in ("tl_atan2f", "tl_fminf", "tl_fmaxf")
    )
    return c_text(ones + pairs, "functions of floats", ["<stdint.h>"])


def computed(name: str, *arguments: np.ndarray, flag: str = "off") -> np.ndarray:
    compiler = find_compiler()
    assert compiler is not None
    library = Library(build(source(), compiler, further=(f"-ffp-contract={flag}",)))
    result = np.zeros(len(arguments[0]), np.float32)
    call = library.function(f"all_{name}", "n" + "*" * (len(arguments) + 1))
    call(len(result), *(np.ascontiguousarray(x, np.float32) for x in arguments), result)
    return result


def ulps(result: np.ndarray, exact: np.ndarray) -> float:
    """Largest error over the spacing of floats at the exact number."""
    return float(
        np.max(np.abs(result.astype(float) - exact) / np.spacing(np.abs(exact).astype(np.float32)))
    )


@needs_compiler
@pytest.mark.parametrize("flag", ["off", "fast"])
@pytest.mark.parametrize(("name", "exact"), [("tl_sinf", np.sin), ("tl_cosf", np.cos)])
def test_sine_and_cosine_up_to_8192_radians(name, exact, flag):
    x = np.concatenate(
        [
            np.linspace(-8192, 8192, 200_001),
            np.linspace(-4, 4, 200_001),
            np.pi / 4 * np.arange(-99, 99),
        ]
    )
    x = x.astype(np.float32)
    result, wanted = computed(name, x, flag=flag), exact(x.astype(float))
    assert np.abs(result.astype(float) - wanted).max() < TURNED
    near = (np.abs(x) < 4) & (np.abs(wanted) > 1e-3)
    assert ulps(result[near], wanted[near]) < NEAR
    assert np.abs(result).max() <= 1.0


@needs_compiler
def test_arctangent_in_all_quadrants():
    angle = np.linspace(-np.pi, np.pi, 400_003)[1:-1]
    size = np.exp(np.linspace(-40, 40, len(angle)))
    y, x = ((size * part(angle)).astype(np.float32) for part in (np.sin, np.cos))
    assert (
        ulps(computed("tl_atan2f", y, x), np.arctan2(y.astype(float), x.astype(float))) < ARCTANGENT
    )
    corners = np.array([(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, -1)], np.float32)
    y, x = corners.T
    assert np.abs(computed("tl_atan2f", y, x) - np.arctan2(y, x)).max() < 3e-7


@needs_compiler
def test_exponential_and_its_ends():
    x = np.linspace(-87, 88, 400_001).astype(np.float32)
    assert ulps(computed("tl_expf", x), np.exp(x.astype(float))) < EXPONENTIAL
    ends = computed("tl_expf", np.array([-100, -np.inf, 89, np.inf, np.nan]))
    assert ends[:2].tolist() == [0, 0]
    assert np.isposinf(ends[2:4]).all()
    assert np.isnan(ends[4])


@needs_compiler
def test_what_is_no_number_stays_none():
    bad = np.array([np.nan, np.inf, -np.inf])
    for name in ("tl_sinf", "tl_cosf"):
        assert np.isnan(computed(name, bad)).all()
    assert np.isnan(computed("tl_floorf", bad[:1])).all()


@needs_compiler
def test_floor_least_and_greatest_are_numpys():
    x = np.concatenate(
        [np.linspace(-9, 9, 7201), [4194303.5, -4194303.5, 1e9, -1e9, -0.0, 2.0**-30, -(2.0**-30)]]
    )
    x = x.astype(np.float32)
    assert np.array_equal(computed("tl_floorf", x), np.floor(x))
    z = np.roll(x, 3)
    z[::50] = np.nan
    assert np.array_equal(computed("tl_fminf", x, z), np.fmin(x, z))
    assert np.array_equal(computed("tl_fminf", z, x), np.fmin(z, x))
    assert np.array_equal(computed("tl_fmaxf", z, x), np.fmax(z, x))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_text_passes_strict_compilers_and_holds_no_double(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}, which is not here")
    body = source().replace("static inline ", "static ")
    for word in ("tl_nearestf", "tl_dotf"):
        assert pieces()["tl_nearestf"].count(f"{word}(")
    (tmp_path / "all.c").write_text(body + pieces()["tl_nearestf"] + USED)
    done = subprocess.run(
        [compiler, *STRICTER, "-c", "all.c"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "double" not in (tmp_path / "all.c").read_text()


#: Calls what nobody else calls.
USED = """
float used(const float *G, const float *h, float *y, float *room, int *working);
float used(const float *G, const float *h, float *y, float *room, int *working)
{
    return tl_nearestf(2, 2, G, h, y, room, working);
}
"""


@pytest.mark.parametrize(
    ("text", "single"),
    [
        ("const double t1 = 0.1 * x[10] + 2;", "const float t1 = 0.1f * x[10] + 2;"),
        (
            "double a[4] = {0.0}; /* a double of 1.0 */",
            "float a[4] = {0.0f}; /* a double of 1.0 */",
        ),
        (
            'sqrt(fabs(t2_0)) < 1e-08 ? tl_sin(floor(3.)) : "1.0"',
            'sqrtf(fabsf(t2_0)) < 1e-08f ? tl_sinf(tl_floorf(3.0f)) : "1.0"',
        ),
        ("health[0] = total < 1e+100 ? d : -1e300;", "health[0] = total < 1e+30f ? d : -1e+30f;"),
        (
            "for (size_t i = 0; i < 16; ++i) x[i] = 0x1F;",
            "for (size_t i = 0; i < 16; ++i) x[i] = 0x1F;",
        ),
    ],
)
def test_doubles_become_floats_and_nothing_else_changes(text, single):
    assert in_single(text) == single


@pytest.mark.parametrize("value", [0.1, 1 / 3, -2.0944, 1e-30, 3.4e38, 0.0, 16777217.0])
def test_a_number_is_the_nearest_float(value):
    text = single_number(value)
    assert text.endswith("f")
    assert np.float32(text[:-1]) == np.float32(value)
