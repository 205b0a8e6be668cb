"""Calls of machine code from Python at the cost of a call: a small extension module instead of ctypes.

It is made once by the C compiler that makes the machine code, where Python's headers are there; without them ctypes
does the same, some two tenths of a microsecond slower. It uses only Python's stable interface.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.machinery
import importlib.util
import math
import sys
import sysconfig
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tauloop.assembly.ports import is_masked
from tauloop.codegen.cache import cache_folder, is_intact, keep
from tauloop.codegen.compiler import build, compiler_stamp, find_compiler, processor_stamp
from tauloop.errors import EngineError, InputError
from tauloop.programs.limits import CONVERGED, SMALLEST_PIVOT

#: Runs the machine code; with an argument, contiguous float64 numbers (no masked array, whose mask would be dropped),
#: these are put at the front of the inputs first.
Call = Callable[..., None]

_MODULE = "tauloop_caller"
_SOURCE = """\
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef void (*Code)(double *const *arrays);
typedef struct { Code code; double *const *arrays; double *inputs; Py_ssize_t most; PyTypeObject *plain; } Bound;

static const char NAME[] = "tauloop.bound";

static void dropped(PyObject *capsule)
{
    const Bound *bound = PyCapsule_GetPointer(capsule, NAME);
    Py_XDECREF((PyObject *)bound->plain);
    Py_XDECREF((PyObject *)PyCapsule_GetContext(capsule));
    PyMem_Free(PyCapsule_GetPointer(capsule, NAME));
}

static PyObject *call(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    const Bound *bound = PyCapsule_GetPointer(self, NAME);
    Py_buffer view;
    int is_good;
    if (!bound) return NULL;
    if (count > 1) return PyErr_Format(PyExc_TypeError, "a bound call takes one state at most, not %zd", count);
    if (count) {
        if (Py_TYPE(given[0]) != bound->plain && PyObject_HasAttrString(given[0], "mask"))
            return PyErr_Format(PyExc_TypeError, "a state cannot be a masked array");
        if (PyObject_GetBuffer(given[0], &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)) return NULL;
        is_good = view.format && !strcmp(view.format, "d") && view.len / (Py_ssize_t)sizeof(double) <= bound->most;
        if (is_good) memcpy(bound->inputs, view.buf, (size_t)view.len);
        PyBuffer_Release(&view);
        if (!is_good) return PyErr_Format(PyExc_ValueError, "a state is at most %zd float64 numbers", bound->most);
    }
    bound->code(bound->arrays);
    Py_RETURN_NONE;
}

static PyMethodDef CALL = {"call", (PyCFunction)(void (*)(void))call, METH_FASTCALL, NULL};

static PyObject *bind(PyObject *module, PyObject *arguments)
{
    unsigned long long code, arrays, inputs;
    Py_ssize_t most;
    PyObject *plain, *kept, *capsule, *made;
    Bound *bound;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "KKKnOO", &code, &arrays, &inputs, &most, &plain, &kept)) return NULL;
    if (!(bound = PyMem_Malloc(sizeof(Bound)))) return PyErr_NoMemory();
    bound->code = (Code)(uintptr_t)code;
    bound->arrays = (double *const *)(uintptr_t)arrays;
    bound->inputs = (double *)(uintptr_t)inputs;
    bound->most = most;
    bound->plain = (PyTypeObject *)plain;
    if (!(capsule = PyCapsule_New(bound, NAME, dropped))) {
        PyMem_Free(bound);
        return NULL;
    }
    Py_INCREF(kept);
    Py_INCREF(plain);
    PyCapsule_SetContext(capsule, kept);
    made = PyCFunction_NewEx(&CALL, capsule, NULL);
    Py_DECREF(capsule);
    return made;
}

typedef struct { double *at; Py_ssize_t size; } Part;
typedef struct {
    Code code;
    double *const *arrays;
    const double *health;
    double smallest_pivot, converged;
    PyTypeObject *plain;
    PyObject *result, *copy, *otherwise, *kept;
    Py_ssize_t count;
    Part parts[];
} Checked;

static const char CHECKED[] = "tauloop.checked";

static void forgotten(PyObject *capsule)
{
    Checked *checked = PyCapsule_GetPointer(capsule, CHECKED);
    Py_XDECREF((PyObject *)checked->plain);
    Py_XDECREF(checked->result);
    Py_XDECREF(checked->copy);
    Py_XDECREF(checked->otherwise);
    Py_XDECREF(checked->kept);
    PyMem_Free(checked);
}

/* Whether an array is one sample of finite numbers, which are then in their place. */
static int taken(const Checked *checked, PyObject *given, const Part *part)
{
    Py_buffer view;
    int is_good;
    Py_ssize_t i;
    if (Py_TYPE(given) != checked->plain) return 0;
    if (PyObject_GetBuffer(given, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)) {
        PyErr_Clear();
        return 0;
    }
    is_good = view.ndim == 1 && view.format && !strcmp(view.format, "d")
        && view.len == part->size * (Py_ssize_t)sizeof(double);
    if (is_good) memcpy(part->at, view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    for (i = 0; is_good && i < part->size; i++) is_good = part->at[i] - part->at[i] == 0.0;
    return is_good;
}

static PyObject *otherwise(const Checked *checked, PyObject *const *given, Py_ssize_t count)
{
    PyObject *arguments = PyTuple_New(count), *found;
    Py_ssize_t i;
    if (!arguments) return NULL;
    for (i = 0; i < count; i++) {
        Py_INCREF(given[i]);
        PyTuple_SetItem(arguments, i, given[i]);
    }
    found = PyObject_CallObject(checked->otherwise, arguments);
    Py_DECREF(arguments);
    return found;
}

static PyObject *call_checked(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    const Checked *checked = PyCapsule_GetPointer(self, CHECKED);
    const double *health;
    Py_ssize_t i;
    if (!checked) return NULL;
    if (count != checked->count) return otherwise(checked, given, count);
    for (i = 0; i < count; i++)
        if (!taken(checked, given[i], &checked->parts[i])) return otherwise(checked, given, count);
    checked->code(checked->arrays);
    health = checked->health;
    if (!(health[0] >= 0.0 && health[1] > checked->smallest_pivot && health[2] < checked->converged
          && health[2] > -checked->converged))
        return otherwise(checked, given, count);
    return PyObject_CallMethodObjArgs(checked->result, checked->copy, NULL);
}

static PyMethodDef CALL_CHECKED
    = {"call", (PyCFunction)(void (*)(void))call_checked, METH_FASTCALL, NULL};

static PyObject *bind_checked(PyObject *module, PyObject *arguments)
{
    unsigned long long code, arrays, health;
    double smallest_pivot, converged;
    PyObject *plain, *result, *other, *kept, *parts, *capsule, *made;
    Checked *checked;
    Py_ssize_t i, count;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "KKKddOOOOO", &code, &arrays, &health, &smallest_pivot, &converged, &plain,
                          &result, &other, &kept, &parts))
        return NULL;
    if ((count = PyTuple_Size(parts)) < 0) return NULL;
    if (!(checked = PyMem_Calloc(1, sizeof(Checked) + (size_t)count * sizeof(Part)))) return PyErr_NoMemory();
    for (i = 0; i < count; i++) {
        unsigned long long at;
        Py_ssize_t size;
        if (!PyArg_ParseTuple(PyTuple_GetItem(parts, i), "Kn", &at, &size)) {
            PyMem_Free(checked);
            return NULL;
        }
        checked->parts[i].at = (double *)(uintptr_t)at;
        checked->parts[i].size = size;
    }
    checked->count = count;
    checked->code = (Code)(uintptr_t)code;
    checked->arrays = (double *const *)(uintptr_t)arrays;
    checked->health = (const double *)(uintptr_t)health;
    checked->smallest_pivot = smallest_pivot;
    checked->converged = converged;
    if (!(checked->copy = PyUnicode_FromString("copy")) || !(capsule = PyCapsule_New(checked, CHECKED, forgotten))) {
        Py_XDECREF(checked->copy);
        PyMem_Free(checked);
        return NULL;
    }
    Py_INCREF(plain);
    Py_INCREF(result);
    Py_INCREF(other);
    Py_INCREF(kept);
    checked->plain = (PyTypeObject *)plain;
    checked->result = result;
    checked->otherwise = other;
    checked->kept = kept;
    made = PyCFunction_NewEx(&CALL_CHECKED, capsule, NULL);
    Py_DECREF(capsule);
    return made;
}

static PyMethodDef METHODS[] = {
    {"bind", bind, METH_VARARGS, NULL}, {"bind_checked", bind_checked, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "tauloop_caller", NULL, -1, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_tauloop_caller(void);
PyMODINIT_FUNC PyInit_tauloop_caller(void)
{
    return PyModule_Create(&MODULE);
}
"""


def prepare() -> None:
    """Make the extension module, if it can be made, while there is other work to wait for."""
    _binding()


def bound_call(library: Path, name: str, arrays: Sequence[np.ndarray], inputs: np.ndarray) -> Call:
    """A call of `void name(double *const *arrays)` on arrays that live as long as the call does.

    Args:
        library, name: the machine code.
        arrays: float arrays, in the order of the table of pointers; empty ones have none.
        inputs: the array at whose front a state is put.
    """
    code, table = _code(library, name, arrays)
    module = _binding()
    if module is None:
        return functools.partial(_called, code, ctypes.byref(table), inputs)
    address = ctypes.cast(code, ctypes.c_void_p).value
    kept = (code, table, inputs)
    call: Call = module.bind(address, ctypes.addressof(table), inputs.ctypes.data, inputs.size, np.ndarray, kept)
    return call


def checked_call(
    library: Path,
    name: str,
    arrays: Sequence[np.ndarray],
    given: Sequence[np.ndarray],
    result: np.ndarray,
    otherwise: Callable[..., Any],
) -> Callable[..., Any]:
    """A call of one sample, `call(*given)`, that looks at the numbers before and at the health behind.

    Args:
        library, name: the machine code.
        arrays: as of `bound_call`; the last one is the health.
        given: those of them that the arguments of a call go to.
        result: what a call gives a copy of, where its arguments are float64 arrays of the right sizes, all finite, and
            the health is good.
        otherwise: is called with the same arguments where anything else is the case; what it gives, the call gives.
    """
    code, table = _code(library, name, arrays)
    module, health = _binding(), arrays[-1]
    if module is None:
        return functools.partial(_checked, code, ctypes.byref(table), given, health, result, otherwise)
    address = ctypes.cast(code, ctypes.c_void_p).value
    parts = tuple((array.ctypes.data, array.size) for array in given)
    call: Callable[..., Any] = module.bind_checked(
        address,
        ctypes.addressof(table),
        health.ctypes.data,
        SMALLEST_PIVOT,
        CONVERGED,
        np.ndarray,
        result,
        otherwise,
        (code, table, tuple(arrays)),
        parts,
    )
    return call


def _code(library: Path, name: str, arrays: Sequence[np.ndarray]) -> tuple[Any, Any]:
    """The machine code, and the table of pointers that it takes."""
    pointer = ctypes.POINTER(ctypes.c_double)
    table = (pointer * len(arrays))()
    for i, array in enumerate(arrays):
        if array.size:  # a pointer made in this way keeps the array alive, and the table keeps the pointers
            table[i] = ctypes.cast((ctypes.c_double * array.size).from_buffer(array), pointer)
    # Without a release of the interpreter's lock, which would cost as much as the code that runs under it.
    code = ctypes.PyDLL(str(library))[name]
    code.restype = None
    return code, table


def _checked(
    code: Any,
    table: Any,
    given: Sequence[np.ndarray],
    health: np.ndarray,
    result: np.ndarray,
    otherwise: Callable[..., Any],
    *arguments: Any,
) -> Any:
    if len(arguments) != len(given):
        return otherwise(*arguments)
    for array, argument in zip(given, arguments, strict=True):
        if type(argument) is not np.ndarray or argument.dtype != np.float64 or argument.shape != array.shape:
            return otherwise(*arguments)
        array[:] = argument
        if not math.isfinite(array.sum()):  # of finite numbers too, beyond all use, if they are huge
            return otherwise(*arguments)
    code(table)
    least, pivot, residual, _ = health.tolist()
    if least >= 0 and pivot > SMALLEST_PIVOT and abs(residual) < CONVERGED:
        return result.copy()
    return otherwise(*arguments)


def _called(code: Any, table: Any, inputs: np.ndarray, state: Any = None) -> None:
    if state is not None:
        if is_masked(state):
            raise TypeError("a state cannot be a masked array")
        view = memoryview(state)
        if view.format != "d" or not view.c_contiguous or view.nbytes > inputs.nbytes:
            raise ValueError(f"a state is at most {inputs.size} float64 numbers")
        memoryview(inputs).cast("B")[: view.nbytes] = view.cast("B")
    code(table)


@functools.cache
def _binding() -> ModuleType | None:
    """The extension module, or None where there is no compiler, no header, or no room."""
    headers = Path(sysconfig.get_path("include"))
    parts = (_SOURCE, sys.version, str(headers), *compiler_stamp(), *processor_stamp())
    module = cache_folder() / f"caller-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:24]}.so"
    with suppress(ImportError, OSError):
        if is_intact(module):
            return _loaded(module)
    with suppress(ImportError, OSError, EngineError, InputError):  # missing, or damaged
        return _loaded(_made(module, headers))
    return None


def _made(module: Path, headers: Path) -> Path:
    """Compile the module, and keep it under a name that is known without starting the compiler."""
    compiler = find_compiler()
    if compiler is None or not (headers / "Python.h").exists():
        raise ImportError("there is no compiler, or there are no headers of Python")
    library = build(_SOURCE, compiler, further=("-std=c11", f"-I{headers}"))
    return keep(library, module)


def _loaded(library: Path) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(_MODULE, str(library))
    module = importlib.util.module_from_spec(importlib.machinery.ModuleSpec(_MODULE, loader, origin=str(library)))
    loader.exec_module(module)
    return module
