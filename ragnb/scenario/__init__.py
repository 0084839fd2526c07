"""The settings of one run, from a YAML file that is read strictly or built in memory, and their snapshot."""

from ragnb.scenario.model import Bands, Patch, Scenario, load_scenario, patch_scenario, plan_patch
