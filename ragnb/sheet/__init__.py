"""The one place where a run is put together: a scenario, a file or a frame becomes one sheet of small frames."""

from ragnb.sheet.assessment import Assessment
from ragnb.sheet.build import assess
