"""The sections of a page, a file each: assessment -> section, in the order in which a reader asks."""

from ragnb.sheet.sections.causes import causes
from ragnb.sheet.sections.comparison import comparison
from ragnb.sheet.sections.documents import documents
from ragnb.sheet.sections.earlier import earlier
from ragnb.sheet.sections.fix import fix_first
from ragnb.sheet.sections.gates import gates
from ragnb.sheet.sections.glossary import glossary
from ragnb.sheet.sections.judge import judge
from ragnb.sheet.sections.judged import judged
from ragnb.sheet.sections.label import label
from ragnb.sheet.sections.losses import losses
from ragnb.sheet.sections.metrics import metrics
from ragnb.sheet.sections.missing import missing
from ragnb.sheet.sections.noise import noise
from ragnb.sheet.sections.outcomes import outcomes
from ragnb.sheet.sections.questions import questions
from ragnb.sheet.sections.retrieval import retrieval
from ragnb.sheet.sections.run import details
from ragnb.sheet.sections.suggestions import suggestions
from ragnb.sheet.sections.summary import summary
from ragnb.sheet.sections.turned import broken, fixed
from ragnb.sheet.sections.turns import turns
from ragnb.sheet.sections.weights import weights
from ragnb.sheet.sections.wording import wording

SECTIONS = {
    "summary": summary,
    "missing": missing,
    "causes": causes,
    "earlier": earlier,
    "suggestions": suggestions,
    "fix": fix_first,
    "metrics": metrics,
    "judged": judged,
    "gates": gates,
    "outcomes": outcomes,
    "retrieval": retrieval,
    "label": label,
    "wording": wording,
    "comparison": comparison,
    "losses": losses,
    "weights": weights,
    "broken": broken,
    "fixed": fixed,
    "documents": documents,
    "turns": turns,
    "judge": judge,
    "noise": noise,
    "questions": questions,
    "run": details,
    "glossary": glossary,
}


"""Key of a section -> its function, in the order in which a reader asks."""
