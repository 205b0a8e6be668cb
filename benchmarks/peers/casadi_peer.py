"""CasADi's own C code of the same equations: `Function.generate`, built with Tauloop's compiler flags."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import numpy as np

from peers.c_loop import loaded_copies
from peers.cache import NotBuilt, built
from peers.computer import compiler_version
from peers.states import NotComparable
from peers.timing import seconds_per_call
from tauloop.common.errors import InputError
from tauloop.compiler.c.calling.compiler import FLAGS, find_compiler
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.poses import Array
from tauloop.model import Model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CasadiResult:
    """Results of one function.

    Attributes:
        version: of CasADi.
        call: time of a call, s.
        values: its output (N, n).
    """

    version: str
    call: float
    values: Array


def run(
    mechanism: Mechanism, function: str, arrays: tuple[Array, Array, Array], seconds: float
) -> CasadiResult:
    """Measure one function on all samples.

    Args:
        mechanism: the machine.
        function: inverse_dynamics or forward_dynamics.
        arrays: position, velocity and the third input (N, n) each.
        seconds: for the measurement.

    Raises:
        NotComparable: the loops are solved by iteration, or there is no C compiler.
    """
    try:
        expression = Model(mechanism).platform.casadi(function)
    except InputError as error:
        raise NotComparable(str(error)) from error
    symbols = [ca.SX.sym(expression.name_in(i), expression.size1_in(i)) for i in range(3)]
    plain = ca.Function("peer", symbols, [ca.densify(expression.call(symbols)[0])])
    loops, values = _loops(plain, arrays)
    loops[0]()
    return CasadiResult(
        version=ca.__version__,
        call=min(seconds_per_call(loop, seconds, len(values)) for loop in loops),
        values=values,
    )


def _loops(
    function: ca.Function, arrays: tuple[Array, Array, Array]
) -> tuple[list[Callable[[], None]], Array]:
    """Return what calls copies of the C function once for each row, and the array of the results."""
    compiler = find_compiler()
    if compiler is None:
        raise NotComparable("there is no C compiler")
    generator = ca.CodeGenerator("peer.c", {"casadi_int": "long long int"})
    generator.add(function)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "peer.c"
        source.write_text(generator.dump() + _LOOP, encoding="utf-8")
        command = [compiler.path, *FLAGS, "-lm"]
        try:
            library = built(
                "casadi_peer", command, source, compiler_version(compiler.path), suffix=".so"
            )
        except NotBuilt as error:
            raise NotComparable(str(error)) from error
    rows = [np.ascontiguousarray(array) for array in arrays]
    values = np.empty((len(rows[0]), function.size1_out(0)))
    pointers = (ctypes.c_void_p * 4)(*(array.ctypes.data for array in (*rows, values)))
    widths = (ctypes.c_size_t * 4)(*(array.shape[1] for array in (*rows, values)))
    work = np.empty(max(1, function.sz_w()))
    integers = np.empty(max(1, function.sz_iw()), dtype=np.int64)
    sizes = function.sz_arg(), function.sz_res()
    if max(sizes) > MOST_POINTERS:
        raise NotComparable("the function needs more pointers than the loop has")

    def of_copy(loaded: ctypes.CDLL) -> Callable[[], None]:
        call = loaded.peer_loop
        call.argtypes, call.restype = [ctypes.c_size_t, *[ctypes.c_void_p] * 4], None

        def run(keep: tuple[object, ...] = (rows, values)) -> None:
            # the default keeps the arrays alive, because `pointers` point into them
            call(len(values), pointers, widths, work.ctypes.data, integers.ctypes.data)

        return run

    return [of_copy(loaded) for loaded in loaded_copies(library)], values


#: Places for arguments and results in the loop; CasADi may use more than a function has.
MOST_POINTERS = 64
_LOOP = f"""
void peer_loop(unsigned long samples, double **a, const unsigned long *n, double *w, long long *iw)
{{
    const double *arg[{MOST_POINTERS}];
    double *res[{MOST_POINTERS}];
    for (unsigned long k = 0; k < samples; ++k) {{
        arg[0] = a[0] + k * n[0];
        arg[1] = a[1] + k * n[1];
        arg[2] = a[2] + k * n[2];
        res[0] = a[3] + k * n[3];
        peer(arg, res, iw, w, 0);
    }}
}}
"""
