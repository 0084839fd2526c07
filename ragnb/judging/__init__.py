"""LLM judges: score answers by a rubric, from 1 to 10.

`judge` scores answers and reports with the scores what its probes found out about the judge. `improve` lets it
steer the system, `arena` sets systems side by side. What is paid for is kept in a `ragnb.store.Store`.
`support_lexical`, of the room `scoring`, needs no model and is no judgement.
"""

from ragnb.judging.improvement import Improved, improve
from ragnb.judging.prompt import evidence_rank, material, system_prompt
from ragnb.judging.run import Judged, dry_run, judge
from ragnb.judging.systems import arena
from ragnb.judging.verdict import Verdict, parse_verdict
from ragnb.scoring import support_lexical
