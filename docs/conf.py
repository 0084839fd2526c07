"""The site: Sphinx over `en/` and `zh/`; pages below `generated/` are written by `ext/generated.py`."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "ext"), str(HERE.parent)]

import ragnb  # noqa: E402

project = "ragnb"
version = release = ragnb.__version__
copyright = "the ragnb authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "generated", "sections"]
exclude_patterns = ["README.md"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
default_role = "py:obj"  # of docstrings: `weighted_means` is a link
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
html_theme = "furo"
html_title = "ragnb"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "ext" / "search.js")
html_copy_source = html_show_sourcelink = html_show_sphinx = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "language.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
templates_path = ["templates"]
pygments_dark_style = "github-dark"
