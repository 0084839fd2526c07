"""What can be said of an answer by its wording alone: no model, no key, no judgement.

The embedded default of scoring, and a check beside a judge. It says what stands where, not what is true.
"""

from ragnb.wording.checks import name_support, number_support
from ragnb.wording.lexical import support_lexical

__all__ = ["name_support", "number_support", "support_lexical"]
