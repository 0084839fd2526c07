"""Notebooks with parameters run by papermill (test_notebooks.py, test_report.py); nbval runs the others."""

collect_ignore = [
    "arena.ipynb",
    "calibration.ipynb",
    "compare.ipynb",
    "report.ipynb",
    "studio.ipynb",
]
