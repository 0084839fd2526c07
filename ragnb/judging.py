"""What can be said of an answer by judging it; at its front too, the score of wording that needs no model."""

from ragnb.wording import support_lexical

__all__ = ["support_lexical"]
