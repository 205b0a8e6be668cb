"""XML that is not well-formed in the ways that TinyXML lets pass is read; others have their reason."""

from __future__ import annotations

from pathlib import Path

import pytest

import tauloop as tl
from tauloop import DescriptionError
from tauloop.formats.xml.nodes import read_xml

BODY = """<robot name="m"><link name="a"/><!-- crank *-- --- -->
<link name="b"/><joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>"""
PLAIN = BODY.replace("<!-- crank *-- --- -->", "")


@pytest.mark.parametrize(
    "content",
    [
        BODY.encode(),
        f'\n \n<?xml version="1.0"?>\n{PLAIN}'.encode(),
        f'\ufeff\n<?xml version="1.0" encoding="utf-8"?>\n{BODY}'.encode(),
        PLAIN.replace('"m"', '"nuts & bolts"').encode(),
        PLAIN.replace('"m"', '"m&quot;&#65;&x;"').encode(),
        PLAIN.replace("</robot>", "<!-- Gr\u00f6\u00dfe --></robot>").encode("latin-1"),
        f'<?xml version="1.0" encoding="ISO-8859-1"?>{PLAIN}'.replace(
            "</robot>", "<!-- \u00e4 --></robot>"
        ).encode("latin-1"),
        PLAIN.replace("</robot>", "<![CDATA[<!-- -- ]]><!-- -- --></robot>").encode(),
    ],
)
def test_what_tinyxml_reads_is_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.urdf").write_bytes(content)
    assert [joint.name for joint in tl.load(tmp_path / "m.urdf").joints] == ["j"]


def test_names_keep_their_letters(tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_bytes("<a name='\u00e4 & b'/>".encode("latin-1"))
    assert read_xml(tmp_path / "m.xml").attributes["name"] == "\u00e4 & b"


@pytest.mark.parametrize(
    ("text", "line", "what", "remedy"),
    [
        ("<robot>\n<link", 2, "unclosed token", "correct the XML at this position"),
        (
            "<robot>\n\n<!-- a -- b -->\n<link></robot>",
            4,
            "mismatched tag",
            "correct the XML at this position",
        ),
        ("<robot>\n<!-- open", 2, "unclosed token", "correct the XML at this position"),
        ("<robot>\n${x < 3}\n</robot>", 2, "not well-formed", "correct the XML at this position"),
    ],
)
def test_what_is_no_xml_is_refused_at_its_line(
    tmp_path: Path, text: str, line: int, what: str, remedy: str
) -> None:
    (tmp_path / "m.urdf").write_text(text, encoding="utf-8")
    with pytest.raises(DescriptionError, match=what) as caught:
        read_xml(tmp_path / "m.urdf")
    (problem,) = caught.value.problems
    assert problem.line == line
    assert problem.remedy.startswith(remedy)


def test_a_document_type_is_refused_whatever_else_is_wrong(tmp_path: Path) -> None:
    text = f'\n<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]>{BODY}'
    (tmp_path / "m.urdf").write_text(text, encoding="utf-8")
    with pytest.raises(
        DescriptionError, match="document type and entity declarations are rejected"
    ):
        read_xml(tmp_path / "m.urdf")


@pytest.mark.parametrize(
    "text", [BODY, f"\ufeff{BODY}", f'\n<?xml version="1.0"?>\n{BODY}', "robot.urdf", "delta"]
)
def test_text_that_load_reads_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(tl.InputError, match=r"tl\.load"):
        tl.loads(text)
