"""Notebooks with parameters run by papermill (test_notebooks.py, test_report.py); nbval runs the others."""

collect_ignore = ["calibration.ipynb", "compare.ipynb", "report.ipynb"]
