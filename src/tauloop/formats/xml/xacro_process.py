"""Expand a xacro file, as a separate program that `tauloop.formats.xml.xacro` starts.

A xacro file is a program: its expressions are Python, and it includes other files. The `xacro`
package does not restrict them: inside a comprehension or a lambda, expressions reach every
attribute, ``$(eval ...)`` has all Python builtins, and includes read any path. Therefore this
process

- accepts only expressions of plain arithmetic, texts, lists and calls, without attributes that
  begin with an underscore or lead from a function to its frame (`_require_plain`);
- opens only files below the folders of the request (with links resolved), and does not import
  modules, start processes or write files after xacro is loaded; an audit hook that cannot be
  removed enforces this (`_guard`);
- has no environment variables, and has limits of time and memory.

The request is JSON on the standard input: ``file``, ``arguments`` (texts by name), ``folders`` (of
packages), ``paths`` (of xacro and PyYAML), ``seconds`` and ``bytes`` (limits of time and of the
size of a file). The reply is JSON: ``text`` and ``warnings``, or ``where``, ``what`` and
``remedy``.
"""

from __future__ import annotations

import ast
import codecs
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any
from xml.dom import expatbuilder, minidom
from xml.parsers import expat

#: Maximum memory of the process, bytes.
_MAX_MEMORY = 1 << 29
#: Maximum number of open files.
_MAX_OPEN_FILES = 64
#: Additional time after which the process ends itself if it was not terminated, s.
_EXIT_GRACE_SECONDS = 5
#: Maximum number of warnings in a reply.
_MAX_WARNINGS = 20
#: Maximum number of characters of a message.
_MAX_MESSAGE_CHARACTERS = 500
#: Codecs that a file may declare. They are loaded first, because Python imports them on first use.
_CODECS = ("utf-8", "utf-16", "ascii", "latin-1", "cp1252")
#: Option for folders of packages.
_FOLDERS = "--package-folder FOLDER"
#: Syntax elements that are allowed in expressions.
_ALLOWED_NODES = (
    *(
        ast.Expression,
        ast.Constant,
        ast.Name,
        ast.Load,
        ast.Store,
        ast.Attribute,
        ast.Subscript,
        ast.Slice,
    ),
    *(
        ast.BinOp,
        ast.UnaryOp,
        ast.BoolOp,
        ast.Compare,
        ast.operator,
        ast.unaryop,
        ast.boolop,
        ast.cmpop,
        ast.IfExp,
    ),
    *(
        ast.Call,
        ast.keyword,
        ast.Starred,
        ast.List,
        ast.Tuple,
        ast.Dict,
        ast.Set,
        ast.JoinedStr,
        ast.FormattedValue,
    ),
    *(
        ast.ListComp,
        ast.SetComp,
        ast.DictComp,
        ast.GeneratorExp,
        ast.comprehension,
        ast.Lambda,
        ast.arguments,
        ast.arg,
    ),
)
#: Attributes without a leading underscore that lead to code and frames.
_FRAME_ATTRIBUTES = frozenset(
    "gi_frame gi_code gi_yieldfrom cr_frame cr_code cr_await cr_origin ag_frame ag_code "
    "ag_await tb_frame tb_next f_back f_builtins f_code f_globals f_locals f_trace mro".split()
)
#: Audit events that no template needs: names, or prefixes of names.
_FORBIDDEN_EVENTS = (
    *(
        "import",
        "os.",
        "subprocess.",
        "socket.",
        "ctypes.",
        "shutil.",
        "pty.",
        "mmap.",
        "signal.",
        "tempfile.",
    ),
    *(
        "urllib.",
        "http.",
        "ftplib.",
        "smtplib.",
        "sqlite3.",
        "webbrowser.",
        "winreg.",
        "resource.",
        "syslog.",
    ),
)
_LISTING_EVENTS = ("os.scandir", "os.listdir")
_ARGUMENT = re.compile(r"\$\(\s*arg\s+([^)\s]+)\s*\)|xacro\.arg\(\s*['\"]([^'\"]+)")


class Refused(Exception):
    """Error of an operation that is not permitted: where, what is wrong and the remedy."""

    def __init__(self, where: str, what: str, remedy: str) -> None:
        """Store the three texts."""
        super().__init__(what)
        self.reply = {"where": where, "what": what, "remedy": remedy}


class _Template:
    """A xacro file, and the folders from which it may read."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.file = Path(request["file"])
        self.packages = [Path(folder) for folder in request["folders"]]
        # for a symbolic link (as in ROS installations) also the folder of its target
        self.roots = [self.file.parent.resolve(), self.file.resolve().parent]
        self.roots += [folder.resolve() for folder in self.packages]
        self.arguments: dict[str, str] = request["arguments"]
        self.max_bytes: int = request["bytes"]
        self.known_arguments: set[str] = set()
        self.warnings: list[str] = []
        self.xacro: Any = None

    def allowed(self, path: str | os.PathLike[str]) -> Path:
        """Return a path with its links resolved; paths outside the folders are rejected."""
        resolved = Path(path).resolve()
        if not any(resolved.is_relative_to(root) for root in self.roots):
            what = f"{os.fspath(path)!r} is outside the folder of the file"
            raise Refused("", what, f"allow its folder with {_FOLDERS}")
        return resolved

    def warn(self, *words: object, **_: object) -> None:
        """Store a warning of xacro, up to a number of warnings."""
        if len(self.warnings) < _MAX_WARNINGS:
            self.warnings.append(" ".join(map(str, words))[:_MAX_MESSAGE_CHARACTERS])

    def find(self, package: str) -> str:
        """Return the folder of a package: from the request, or a parent folder of the file."""
        from_options = [
            folder if folder.resolve().name == package else folder / package
            for folder in self.packages
        ]
        parent_folders = [
            folder for folder in self.file.resolve().parents if folder.name == package
        ]
        for folder in (*from_options, *parent_folders):
            if folder.is_dir():
                return str(folder)
        what = f"there is no folder of the package {package!r}"
        raise Refused(f"$(find {package})", what, f"give it or its parent folder: {_FOLDERS}")

    def parse(self, _given: object, filename: str) -> minidom.Document:
        """Return an included file; reject document types, which could expand without limit."""
        resolved = self.allowed(filename)
        if not resolved.is_file():
            self.xacro.filestack.pop()  # as xacro does; it continues if the file is optional
            missing = FileNotFoundError(filename)
            raise self.xacro.XacroException(
                f"there is no file {os.fspath(filename)!r}", exc=missing
            )
        content = resolved.read_bytes()
        if len(content) > self.max_bytes:
            raise Refused(
                "",
                f"{os.fspath(filename)}: {len(content) / 1e6:.1f} MB is too large",
                "store meshes in separate files",
            )
        scan = expat.ParserCreate()
        scan.StartDoctypeDeclHandler = scan.EntityDeclHandler = _refuse_document_type
        scan.Parse(content, True)
        document = expatbuilder.parseString(content)
        for argument in document.getElementsByTagName("xacro:arg"):
            self.known_arguments.add(argument.getAttribute("name"))
        for match in _ARGUMENT.finditer(content.decode("utf-8", "replace")):
            self.known_arguments.add(match[1] or match[2])
        return document

    def abs_filename(self, name: str) -> str:
        """Return the path of a name relative to the file that contains it, if it may be read."""
        path = os.path.join(os.path.dirname(self.xacro.filestack[-1]), name)
        self.allowed(path)
        return path

    def evaluated(self, expression: str, context: dict[str, Any]) -> str:
        """Return the value of ``$(eval ...)`` without the builtins that xacro gives it."""
        substitutions = self.xacro.substitution_args
        texts = context.get("arg", {})
        converted = {
            name: substitutions.convert_value(text, "auto") for name, text in texts.items()
        }
        symbols = {
            name: item
            for name, item in substitutions._eval_dict.items()
            if not name.startswith("__")
        }
        builtins = {kind.__name__: kind for kind in (list, dict, map, str, float, int)}
        symbols = converted | builtins | symbols | {"arg": converted.__getitem__}
        return str(self.xacro.safe_eval(expression, symbols))


def _refuse_document_type(*_: object) -> None:
    what = (
        "document type and entity declarations are rejected, because they may expand without limit"
    )
    raise Refused("", what, "remove <!DOCTYPE ...> and <!ENTITY ...>")


def _environment(name: str, *_: object) -> str:
    what = "environment variables are not supported"
    raise Refused(
        f"$(env {name})", what, "use <xacro:arg>, and give its value: --xacro NAME:=VALUE"
    )


def _require_plain(expression: str) -> None:
    """Reject an expression that is more than plain arithmetic, texts, lists and calls."""
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return  # xacro reports the syntax error
    for node in ast.walk(tree):
        name = ""
        if isinstance(node, ast.Name):
            name = node.id
        elif isinstance(node, ast.Attribute):
            name = node.attr
        is_hidden = name.startswith("__") or (
            isinstance(node, ast.Attribute) and name.startswith("_")
        )
        if is_hidden or name in _FRAME_ATTRIBUTES or not isinstance(node, _ALLOWED_NODES):
            what = f"{name or type(node).__name__!r} could run arbitrary code"
            raise Refused(
                f"${{{expression.strip()[:80]}}}", what, "write the expression without it"
            )


def _guard(template: _Template) -> None:
    """Restrict the process to reading files below the template's folders."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode = arguments[0], arguments[1]
            is_reading = mode is None or (isinstance(mode, str) and set(mode) <= set("rbt"))
            if isinstance(path, int) or not is_reading:
                raise Refused("", f"it opens {path!r} for writing", "remove this from the file")
            template.allowed(os.fsdecode(path))
        elif event in _LISTING_EVENTS:
            template.allowed(os.fsdecode(arguments[0] or "."))
        elif event.startswith(_FORBIDDEN_EVENTS):
            what = f"it performs a forbidden operation: {event} {str(arguments[:1])[:80]}"
            raise Refused("", what, "remove this from the file")

    sys.addaudithook(hook)


def _limit(seconds: int) -> None:
    """Set limits of time, memory and files, if the system supports them."""
    try:
        import resource
    except ImportError:
        return
    for kind, limit in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, _MAX_MEMORY),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, _MAX_OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard_limit = resource.getrlimit(kind)
        bound = limit if hard_limit == resource.RLIM_INFINITY else min(limit, hard_limit)
        resource.setrlimit(kind, (bound, bound))


def _expand(template: _Template) -> dict[str, Any]:
    """Return the reply for a template, with restricted versions of xacro's functions."""
    import xacro
    import yaml
    from xacro import substitution_args as substitutions

    for unit in xacro.ConstructUnits:
        yaml.SafeLoader.add_constructor(unit.value.tag, unit.constructor)
    for name in ("vars", "type"):  # they give access to attributes that are forbidden
        xacro._global_symbols["python"].pop(name, None)
    evaluate = xacro.safe_eval

    def evaluate_plain(expression: str, *symbols: Any) -> Any:
        _require_plain(expression)
        return evaluate(expression, *symbols)

    template.xacro = xacro
    xacro.safe_eval = evaluate_plain
    substitutions._eval = template.evaluated
    for name, function in {"find": template.find, "env": _environment}.items():
        setattr(substitutions, f"_eval_{name}", function)
        substitutions._eval_dict[name] = function
    xacro.parse = template.parse
    xacro.abs_filename_spec = template.abs_filename
    xacro.warning = template.warn
    xacro.print_location = lambda *_, **__: None
    _guard(template)
    try:
        document = xacro.process_file(
            str(template.file), mappings=dict(template.arguments), verbosity=0
        )
        text = document.toprettyxml(indent="  ")
    except Exception as error:
        return _reply(xacro, error)
    if len(text) > template.max_bytes:
        what = f"it expands to {len(text) / 1e6:.1f} MB"
        return {"where": "", "what": what, "remedy": "store meshes in separate files"}
    unknown = [name for name in template.arguments if name not in template.known_arguments]
    if unknown:
        known = ", ".join(sorted(template.known_arguments)) or "none"
        what = f"there is no argument {', '.join(unknown)}"
        return {"where": "--xacro", "what": what, "remedy": f"there are {known}"}
    return {"text": text, "warnings": list(dict.fromkeys(template.warnings))}


def _reply(xacro: Any, error: Exception) -> dict[str, Any]:
    """Return the reply for an error: the `Refused` inside xacro's errors, or their text."""
    file = str(xacro.filestack[-1]) if xacro.filestack else ""
    inner: BaseException | None = error
    exceeded = ""
    while inner is not None:
        if isinstance(inner, Refused):
            return {**inner.reply, "file": file}
        if isinstance(inner, RecursionError | MemoryError):
            exceeded = type(inner).__name__
        inner = getattr(inner, "exc", None) or inner.__cause__ or inner.__context__
    what = " ".join(str(error).split()) or type(error).__name__
    remedy = "correct the xacro file"
    if exceeded:
        what = f"its expansion does not end, or exceeds the limits of size and time ({exceeded})"
        remedy = "correct the macro or file that includes itself"
    elif "Undefined substitution argument" in what:
        remedy = "give its value: --xacro NAME:=VALUE"
    return {"where": "", "what": what, "remedy": remedy, "file": file}


def main() -> None:
    """Read the request and write the reply."""
    request = json.load(sys.stdin)
    replies = sys.stdout
    # a template may print without end, which would fill this process's memory
    sys.stdout = sys.stderr = io.StringIO()
    os.environ.clear()
    sys.path.extend(path for path in request["paths"] if path not in sys.path)
    _limit(request["seconds"] + _EXIT_GRACE_SECONDS)
    for name in _CODECS:
        codecs.lookup(name)
    try:
        reply = _expand(_Template(request))
    except Exception as error:
        what = f"this xacro cannot be used: {type(error).__name__}: {error}"
        reply = {"where": "", "what": what, "remedy": "pip install 'tauloop[xacro]'"}
    if "text" not in reply:
        reply = {key: text[:_MAX_MESSAGE_CHARACTERS] for key, text in reply.items()}
    json.dump(reply, replies)
    replies.flush()


if __name__ == "__main__":
    main()
