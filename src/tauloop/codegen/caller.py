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
import sys
import sysconfig
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.assembly.ports import is_masked
from tauloop.codegen.cache import cache_folder, is_intact, keep
from tauloop.codegen.compiler import build, compiler_stamp, find_compiler, processor_stamp
from tauloop.errors import EngineError, InputError

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

static PyMethodDef METHODS[] = {{"bind", bind, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
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
    pointer = ctypes.POINTER(ctypes.c_double)
    table = (pointer * len(arrays))()
    for i, array in enumerate(arrays):
        if array.size:  # a pointer made in this way keeps the array alive, and the table keeps the pointers
            table[i] = ctypes.cast((ctypes.c_double * array.size).from_buffer(array), pointer)
    # Without a release of the interpreter's lock, which would cost as much as the code that runs under it.
    code = ctypes.PyDLL(str(library))[name]
    code.restype = None
    binding = _binding()
    if binding is None:
        return functools.partial(_called, code, ctypes.byref(table), inputs)
    address = ctypes.cast(code, ctypes.c_void_p).value
    return binding(address, ctypes.addressof(table), inputs.ctypes.data, inputs.size, np.ndarray, (code, table, inputs))


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
def _binding() -> Callable[..., Call] | None:
    """The extension module's function, or None where there is no compiler, no header, or no room."""
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


def _loaded(library: Path) -> Callable[..., Call]:
    loader = importlib.machinery.ExtensionFileLoader(_MODULE, str(library))
    module = importlib.util.module_from_spec(importlib.machinery.ModuleSpec(_MODULE, loader, origin=str(library)))
    loader.exec_module(module)
    binding: Callable[..., Call] = module.bind
    return binding
