"""PDF files of a few lines, for tests that read documents."""


def pdf_bytes(pages):
    """A PDF with lines of Helvetica on each page, written by hand from the PDF 1.4 reference."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for text in pages:
        lines = "".join(f"({line}) Tj T* " for line in text.split("\n") if line)
        content = f"BT /F1 12 Tf 14 TL 72 720 Td {lines}ET"
        kids.append(len(objects) + 1)
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Contents {len(objects) + 2} 0 R /Resources << /Font << /F1 << /Type /Font "
            "/Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    references = " ".join(f"{number} 0 R" for number in kids)
    objects[1] = f"<< /Type /Pages /Kids [{references}] /Count {len(kids)} >>"
    written = "%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(written))
        written += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n{table}"
    trailer = (
        f"trailer\n<< /Size {len(places) + 1} /Root 1 0 R >>\nstartxref\n{len(written)}\n%%EOF"
    )
    return (written + end + trailer).encode("latin-1")
