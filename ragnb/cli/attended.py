"""``python -m ragnb.cli.attended``: a command for a window. It stops as after Ctrl-C when the window is gone.

Who starts it holds its standard input open. Closing that stops it in the same way on every system, and where the
starter was killed it closes by itself: nothing goes on paying for calls that nobody awaits.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading

from ragnb.cli import main


def _stop_at_end_of_input() -> None:
    # os.read, as a thread that waits in sys.stdin would hold its lock while the interpreter ends.
    while os.read(0, 1024):
        pass
    _thread.interrupt_main()


if __name__ == "__main__":
    threading.Thread(target=_stop_at_end_of_input, daemon=True).start()
    sys.exit(main())
