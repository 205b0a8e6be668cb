"""Damaged copies of a good file: bytes, words and lines changed as people, editors and attackers change them.

Every choice is asked of a function ``draw(n)`` that gives a whole number below n, so that
hypothesis, atheris and a random generator drive the same code.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Draw = Callable[[int], int]

#: Words that readers have stumbled over, here or elsewhere.
HOSTILE = (
    *(
        b"",
        b"0",
        b"-1",
        b"1e308",
        b"1e-320",
        b"-0.0",
        b"nan",
        b"inf",
        b"-.inf",
        b"0x1F",
        b"1_000",
        b"007",
        b"1e",
        b"+",
    ),
    *(
        b"9" * 400,
        b"1" + b"0" * 5000,
        b"1e99999",
        b"0.5mm",
        b"0.5 mm",
        b"30 deg",
        b"2 furlong",
        b"1/0",
        b"2 ** 999",
    ),
    *(
        b"null",
        b"~",
        b"true",
        b"no",
        b"[]",
        b"{}",
        b"[[[[[[",
        b"{a: {b: {c: {}}}}",
        b"&a [*a, *a]",
        b"*a",
        b"<<: *a",
    ),
    *(
        b"!!python/object:os.system",
        b"!!binary aaaa",
        b"%YAML 9.9",
        b"--- ",
        b"...",
        b"? ",
        b"- " * 60,
        b"|",
        b">-",
    ),
    *(
        b"\x00",
        b"\x1b[31m",
        b"\x07",
        b"\x7f",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xc0\x80",
        b"\xed\xa0\x80",
    ),
    *("\u202e".encode(), "é".encode(), "\u2028".encode(), "Ω".encode(), "\U0001f980".encode()),
    *(
        b"$x^{",
        b"%s%n",
        b"{0.__class__}",
        b"*/",
        b'"',
        b"'",
        b"`id`",
        b"$(id)",
        b"../../etc/passwd",
        b"/dev/stdin",
    ),
    *(
        b"a" * 3000,
        b"con",
        b"base",
        b"platform",
        b"__class__",
        b"lambda",
        b"<!ENTITY a 'b'>",
        b"&a;",
        b"<![CDATA[",
        b"]]>",
    ),
    *(
        b",",
        b";",
        b"\t",
        b"\r",
        b"\r\n",
        b"1,5",
        b"1.5.2",
        b"12:30:00",
        b"repeat: 1000000",
        b"1000000",
    ),
)
_WORD = re.compile(rb"[\w.+-]+")
#: Longest copy, bytes: a mutation that doubles lines again and again ends there.
LONGEST = 400_000


def mutated(draw: Draw, good: bytes, others: tuple[bytes, ...] = (), most: int = 4) -> bytes:
    """A copy of a good file with one to `most` changes; words and lines may come from other good files."""
    data = good
    for _ in range(1 + draw(most)):
        data = _CHANGES[draw(len(_CHANGES))](draw, data, others)[:LONGEST]
    return data


def _word(draw: Draw, data: bytes, others: tuple[bytes, ...]) -> bytes:
    """One word becomes a hostile one, or one of another place or file."""
    places = [match.span() for match in _WORD.finditer(data)]
    if not places:
        return data + HOSTILE[draw(len(HOSTILE))]
    start, end = places[draw(len(places))]
    if draw(3):
        new = HOSTILE[draw(len(HOSTILE))]
    else:
        source = others[draw(len(others))] if others and draw(2) else data
        words = _WORD.findall(source) or [b""]
        new = words[draw(len(words))]
    return data[:start] + new + data[end:]


def _number(draw: Draw, data: bytes, others: tuple[bytes, ...]) -> bytes:
    """One number becomes zero, its negative, a tenth, a million times itself, or loses its point."""
    places = [match.span() for match in re.finditer(rb"\d+\.?\d*", data)]
    if not places:
        return data
    start, end = places[draw(len(places))]
    old = data[start:end]
    new = (
        b"0",
        b"-" + old,
        b"0." + old.replace(b".", b""),
        old + b"e6",
        old.replace(b".", b","),
        old + b".",
    )[draw(6)]
    return data[:start] + new + data[end:]


def _line(draw: Draw, data: bytes, others: tuple[bytes, ...]) -> bytes:
    """One line goes, comes twice, is indented anew, changes places, or comes from another file."""
    lines = data.split(b"\n")
    i, action = draw(len(lines)), draw(6)
    if action == 0:
        del lines[i]
    elif action == 1:
        lines[i:i] = [lines[i]] * (1 + draw(3))
    elif action == 2:
        lines[i] = b" " * draw(9) + lines[i].lstrip()
    elif action == 3:
        j = draw(len(lines))
        lines[i], lines[j] = lines[j], lines[i]
    elif action == 4 and others:
        source = others[draw(len(others))].split(b"\n")
        lines.insert(i, source[draw(len(source))])
    else:
        j = min(len(lines), i + 1 + draw(12))
        lines[i:j] = lines[i:j] * 2
    return b"\n".join(lines)


def _bytes(draw: Draw, data: bytes, others: tuple[bytes, ...]) -> bytes:
    """A byte is flipped, a stretch goes or comes twice, or the end is cut off."""
    if not data:
        return bytes([draw(256)])
    i, action = draw(len(data)), draw(4)
    if action == 0:
        return data[:i] + bytes([draw(256)]) + data[i + 1 :]
    if action == 1:
        return data[:i]
    j = min(len(data), i + 1 + draw(64))
    return data[:i] + data[j:] if action == 2 else data[:j] + data[i:j] + data[j:]


def _insert(draw: Draw, data: bytes, others: tuple[bytes, ...]) -> bytes:
    """A hostile word between two bytes."""
    i = draw(len(data) + 1)
    return data[:i] + HOSTILE[draw(len(HOSTILE))] + data[i:]


_CHANGES = (_word, _word, _word, _number, _number, _line, _line, _bytes, _insert)
