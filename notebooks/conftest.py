"""The report notebook runs by papermill, with parameters (tests/test_report.py); nbval runs the others."""

collect_ignore = ["report.ipynb"]
