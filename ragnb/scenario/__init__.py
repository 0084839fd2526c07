"""The settings of one run, from a YAML file that is read strictly or built in memory, and their snapshot."""

from ragnb.scenario.kinds import Bands
from ragnb.scenario.load import load_scenario
from ragnb.scenario.model import Scenario
from ragnb.scenario.patch import Patch, patch_scenario, plan_patch
from ragnb.scenario.settings import Settings

__all__ = ["Bands", "Patch", "Scenario", "Settings", "load_scenario", "patch_scenario", "plan_patch"]
