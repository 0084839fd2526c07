"""Files too large to hold: queries over their rows under the canonical names, which engines reduce in a stream."""

from ragnb.streams.opened import Stream, stream_scores
from ragnb.streams.typed import groups_listed, shown_rows

__all__ = ["Stream", "groups_listed", "shown_rows", "stream_scores"]
