"""A scenario → one folder: the report notebook runs in a kernel of this Python, and saves the page and tables.

The page is made by `Assessment.save`, not from the executed notebook, which lies beside it.
"""

from ragnb.errors import need_package
from ragnb.report.history import index
from ragnb.report.run import Made, ReportResult, report, reports

need_package("papermill", extra="notebook")
