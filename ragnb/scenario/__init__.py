"""The settings of one run: a checked model, loaded from a YAML file that is read strictly, and saved into it."""

from ragnb.scenario.fields import Bands
from ragnb.scenario.load import load_scenario
from ragnb.scenario.model import Scenario, need_arguments
from ragnb.scenario.patch import Patch, patch_scenario, plan_patch
