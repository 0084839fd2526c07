"""Signals that end a process (SIGTERM, SIGHUP) interrupt it as Ctrl-C does: it saves, and says what to do."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Windows has no SIGHUP.
ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Interrupted(KeyboardInterrupt):
    """An interruption by a signal.

    Parameters
    ----------
    message : str
    number : int
        Of the signal; that of Ctrl-C by default.
    """

    def __init__(self, message: str = "", number: int = signal.SIGINT) -> None:
        super().__init__(message)
        self.number = int(number)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise `Interrupted` in this block where a signal would end the process without a word.

    A signal that is ignored (as by nohup) or handled by somebody else is left alone, and so are all outside the
    main thread.

    Examples
    --------
    >>> with interruptible():
    ...     saved = "all that was done before a signal comes"
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    ours = [one for one in ENDING if in_main_thread and signal.getsignal(one) == signal.SIG_DFL]
    for one in ours:
        signal.signal(one, _raise)
    try:
        yield
    finally:
        for one in ours:
            signal.signal(one, signal.SIG_DFL)


def _raise(number: int, frame: FrameType | None) -> None:
    raise Interrupted(number=number)


def number_of(stop: BaseException) -> int:
    """Return the signal that an exception came of, also behind another one; that of Ctrl-C where none says.

    Examples
    --------
    >>> number_of(Interrupted(number=15)), number_of(KeyboardInterrupt())
    (15, 2)
    """
    for one in (stop, stop.__cause__, stop.__context__):
        if isinstance(one, Interrupted):
            return one.number
    return int(signal.SIGINT)
