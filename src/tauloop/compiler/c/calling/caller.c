/* Calls of machine code from Python at the cost of a call; uses only Python's stable interface. */
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
        if (!is_good) return PyErr_Format(PyExc_ValueError, "a state must be a contiguous float64 array of at most %zd numbers", bound->most);
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

enum { MAX_ARRAYS = 64 };
typedef size_t (*Batch)(size_t n, double *const *arrays, const size_t *steps);
typedef struct {
    Batch code;
    PyTypeObject *plain;
    PyObject *kept;
    Py_ssize_t count, inputs, block;
    Py_ssize_t sizes[MAX_ARRAYS];
} Counted;

static const char COUNTED[] = "tauloop.counted";

static void counted_forgotten(PyObject *capsule)
{
    Counted *counted = PyCapsule_GetPointer(capsule, COUNTED);
    Py_XDECREF((PyObject *)counted->plain);
    Py_XDECREF(counted->kept);
    PyMem_Free(counted);
}

/* Whether an array has n rows of contiguous float64 numbers; how far apart the rows are is the caller's to check. */
static int is_rows(const Py_buffer *view, Py_ssize_t n, Py_ssize_t size)
{
    return view->ndim == 2 && view->format && !strcmp(view->format, "d") && view->shape[0] == n
        && view->shape[1] == size && (size < 2 || view->strides[1] == (Py_ssize_t)sizeof(double));
}

/* The arrays of a range of samples, with the numbers between samples; rows that all samples share are copied into
   `rows`, one behind the other. Returns whether all arrays are as they must be. */
static int laid_out(const Counted *counted, const Py_buffer *views, Py_ssize_t first, Py_ssize_t n, double **arrays,
                    size_t *steps, double **rows)
{
    static double none;
    Py_ssize_t i, k, shared = 0;
    double *next;
    for (i = 0; i < counted->count; i++) {
        const Py_ssize_t size = counted->sizes[i], apart = views[i].strides ? views[i].strides[0] : 0;
        const int is_contiguous = n < 2 || !size || apart == size * (Py_ssize_t)sizeof(double);
        if (!is_rows(&views[i], n, size)) return 0;
        if (!is_contiguous && (apart || i >= counted->inputs)) return 0;
        steps[i] = is_contiguous ? (size_t)size : 0;
        arrays[i] = size ? (double *)views[i].buf + (is_contiguous ? first * size : 0) : &none;
        if (!is_contiguous) shared += size * counted->block;
    }
    if (!shared) return 1;
    if (!(*rows = next = PyMem_Malloc((size_t)shared * sizeof(double)))) return 0;
    for (i = 0; i < counted->inputs; i++) {
        const Py_ssize_t size = counted->sizes[i];
        if (steps[i] || !size) continue;
        for (k = 0; k < counted->block; k++) memcpy(next + k * size, arrays[i], (size_t)size * sizeof(double));
        arrays[i] = next;
        next += size * counted->block;
    }
    return 1;
}

static PyObject *call_counted(PyObject *self, PyObject *const *given, Py_ssize_t count)
{
    const Counted *counted = PyCapsule_GetPointer(self, COUNTED);
    Py_buffer views[MAX_ARRAYS];
    double *arrays[MAX_ARRAYS], *rows = NULL;
    size_t steps[MAX_ARRAYS], bad = 0;
    Py_ssize_t first, number, n, taken = 0;
    int is_good;
    if (!counted) return NULL;
    if (count != counted->count + 3) return PyErr_Format(PyExc_TypeError, "%zd arguments are needed", counted->count + 3);
    first = PyLong_AsSsize_t(given[0]);
    number = PyLong_AsSsize_t(given[1]);
    n = PyLong_AsSsize_t(given[2]);
    if (PyErr_Occurred()) return NULL;
    if (first < 0 || number < 0 || first > n || number > n - first)
        return PyErr_Format(PyExc_ValueError, "samples %zd to %zd of %zd", first, first + number, n);
    for (; taken < counted->count; taken++) {
        const int flags = PyBUF_STRIDES | PyBUF_FORMAT | (taken < counted->inputs ? 0 : PyBUF_WRITABLE);
        if (Py_TYPE(given[taken + 3]) != counted->plain) break;
        if (PyObject_GetBuffer(given[taken + 3], &views[taken], flags)) {
            PyErr_Clear();
            break;
        }
    }
    is_good = taken == counted->count && laid_out(counted, views, first, n, arrays, steps, &rows);
    if (is_good) {
        Py_BEGIN_ALLOW_THREADS
        bad = counted->code((size_t)number, arrays, steps);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(rows);
    while (taken--) PyBuffer_Release(&views[taken]);
    if (!is_good) Py_RETURN_NONE;
    return PyLong_FromSize_t(bad);
}

static PyMethodDef CALL_COUNTED
    = {"call", (PyCFunction)(void (*)(void))call_counted, METH_FASTCALL, NULL};

static PyObject *bind_counted(PyObject *module, PyObject *arguments)
{
    unsigned long long code;
    Py_ssize_t inputs, block, i, count;
    PyObject *plain, *kept, *sizes, *capsule, *made;
    Counted *counted;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "KOOOnn", &code, &plain, &kept, &sizes, &inputs, &block)) return NULL;
    if ((count = PyTuple_Size(sizes)) < 0) return NULL;
    if (count > MAX_ARRAYS) return PyErr_Format(PyExc_ValueError, "%zd arrays are too many", count);
    if (!(counted = PyMem_Calloc(1, sizeof(Counted)))) return PyErr_NoMemory();
    for (i = 0; i < count; i++) counted->sizes[i] = PyLong_AsSsize_t(PyTuple_GetItem(sizes, i));
    if (PyErr_Occurred() || !(capsule = PyCapsule_New(counted, COUNTED, counted_forgotten))) {
        PyMem_Free(counted);
        return NULL;
    }
    Py_INCREF(plain);
    Py_INCREF(kept);
    counted->code = (Batch)(uintptr_t)code;
    counted->plain = (PyTypeObject *)plain;
    counted->kept = kept;
    counted->count = count;
    counted->inputs = inputs;
    counted->block = block;
    made = PyCFunction_NewEx(&CALL_COUNTED, capsule, NULL);
    Py_DECREF(capsule);
    return made;
}

static PyMethodDef METHODS[] = {{"bind", bind, METH_VARARGS, NULL},
                                {"bind_checked", bind_checked, METH_VARARGS, NULL},
                                {"bind_counted", bind_counted, METH_VARARGS, NULL},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "tauloop_caller", NULL, -1, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_tauloop_caller(void);
PyMODINIT_FUNC PyInit_tauloop_caller(void)
{
    return PyModule_Create(&MODULE);
}
