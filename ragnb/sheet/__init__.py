"""The one place where a run is put together: a scenario, a file or a frame becomes one sheet of small frames."""

from ragnb.sheet.build import Assessment, assess
