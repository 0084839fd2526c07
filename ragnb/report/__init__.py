"""A scenario → one folder: the report notebook runs in a kernel of this Python, and its outputs become the page.

The page is put together from the outputs that are HTML of ours (`page.assemble`), not by nbconvert: four of
its template blocks would have to be replaced, and its default asks three hosts for scripts.
"""

from ragnb.errors import need_package
from ragnb.report.batch import Made, index, reports
from ragnb.report.page import shown
from ragnb.report.pictures import card_pictures
from ragnb.report.run import ReportResult, report

need_package("papermill", extra="notebook")

__all__ = ["Made", "ReportResult", "card_pictures", "index", "report", "reports", "shown"]
