"""Documents as people have them: PDF page by page, HTML as it is read, text; what cannot be read is named."""

import re
import warnings

import pytest
from pdf import pdf_bytes

import ragnb as rn
from ragnb.errors import RagnbError, RagnbWarning
from ragnb.scoring import passages_of
from ragnb.scoring.documents import html_text

PAGES = [
    "The warranty is 24 months.\nIt begins on delivery.",
    "",
    "Repairs take five working days.",
]


def test_a_pdf_is_read_page_by_page_and_a_page_without_text_is_named(tmp_path):
    (tmp_path / "handbook.pdf").write_bytes(pdf_bytes(PAGES))
    with pytest.warns(RagnbWarning, match=r"no text on page 2 of 3: a scan\?"):
        found = passages_of(tmp_path)
    assert found["unit"].tolist() == ["handbook.pdf#page=1", "handbook.pdf#page=3"]
    assert found["doc_name"].unique().tolist() == ["handbook.pdf"]
    texts = [" ".join(text.split()) for text in found["text"]]
    assert texts == [" ".join(page.split()) for page in PAGES if page]


def test_a_long_page_has_several_passages_with_names_of_their_own(tmp_path):
    page = "\n".join(f"Sentence {n} of the page has some words." for n in range(55))
    (tmp_path / "a.pdf").write_bytes(pdf_bytes([page, "Short."]))
    found = passages_of(tmp_path)
    assert found["unit"].is_unique
    on_first = [unit for unit in found["unit"] if "#page=1" in unit]
    assert on_first == [
        "a.pdf#page=1",
        *(f"a.pdf#page=1&passage={n}" for n in range(2, 2 + len(on_first) - 1)),
    ]
    assert len(on_first) > 1
    assert re.findall(r"Sentence (\d+)", " ".join(found["text"])) == [str(n) for n in range(55)]


def test_one_file_is_a_document_too(tmp_path):
    path = tmp_path / "one.pdf"
    path.write_bytes(pdf_bytes(["Only page."]))
    assert passages_of(path)["unit"].tolist() == ["one.pdf#page=1"]
    (tmp_path / "page.html").write_text("<p>Only page.</p>", encoding="utf-8")
    assert passages_of(tmp_path / "page.html")["unit"].tolist() == ["page.html#1"]


@pytest.mark.parametrize(
    "content", [b"", b"%PDF-1.4\nnothing", b"PK\x03\x04", pdf_bytes(PAGES)[:300]]
)
def test_a_file_that_is_no_pdf_is_named_with_the_next_step(tmp_path, content):
    (tmp_path / "broken.pdf").write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RagnbWarning)
        with pytest.raises(
            RagnbError, match=r"broken\.pdf: (cannot be read as PDF|holds no text)|holds no text"
        ):
            passages_of(tmp_path)


def test_a_pdf_that_a_password_locks_is_refused(tmp_path):
    pypdf = pytest.importorskip("pypdf")
    (tmp_path / "open.pdf").write_bytes(pdf_bytes(PAGES))
    writer = pypdf.PdfWriter(clone_from=tmp_path / "open.pdf")
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(tmp_path / "open.pdf")
    with pytest.raises(RagnbError, match="without a password"):
        passages_of(tmp_path)


def test_html_is_what_a_reader_sees():
    html = """<!doctype html><html><head><title>x</title><style>p{}</style></head><body>
    <h1>Fees &amp; terms</h1><p>The fee is <b>5</b>&nbsp;euros,<br>due in <em>May</em>.</p>
    <script>var hidden = "<p>no</p>"</script><ul><li>One</li><li>Two</li></ul>
    <table><tr><th>Item</th><th>Price</th></tr><tr><td>Pump</td><td>40</td></tr></table></body></html>"""
    text = html_text(html)
    assert text.split("\n\n") == [
        "# Fees & terms",
        "The fee is 5 euros,\ndue in May.",
        "One",
        "Two",
        "Item Price\nPump 40",
    ]


def test_questions_are_made_of_a_pdf(tmp_path, llm_server):
    (tmp_path / "handbook.pdf").write_bytes(pdf_bytes(PAGES))
    with pytest.warns(RagnbWarning, match="a scan"):
        cost = rn.scoring.generation_cost(
            tmp_path,
            client=rn.Profile(base_url=llm_server.base_url, model="m"),
            n=2,
            unanswerable=0,
        )
    assert cost.calls == 2
    assert llm_server.log == []
