"""What the tests of cards share: every line that a card prints is run, as it stands there."""

import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

from ragnb.cli import main

# Where a choice is open, the error says what can be chosen.
CHOICE = re.compile(r"open choice|'\?'")


def lines_of(card, label):
    """The lines behind a label, such as ``Python: ``, of a printed card."""
    return [line.removeprefix(label) for line in str(card).splitlines() if line.startswith(label)]


def run_python(line, **given):
    """Run a line with what is given; return the error of an open choice, None where it works."""
    try:
        exec(line, given)
    except Exception as error:
        if "?" not in line or not CHOICE.search(str(error)):
            raise AssertionError(f"{line}\n{error}") from error
        return str(error)
    assert "='?'" not in line, f"an open choice was taken: {line}"
    return None


def run_shell(line):
    """Run a command; return what it says on stderr where it refuses an open choice, None where it works."""
    words = shlex.split(line)
    assert words[0] == "ragnb"
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as said:
        code = main(words[1:])
    if '"?"' in line:
        assert code == 2
        assert CHOICE.search(said.getvalue()), said.getvalue()
        return said.getvalue()
    # 0 ready, 1 blocked, 2 incomplete input (which prints a verdict), 3 a judge not shown to be right.
    refused = said.getvalue().startswith("ragnb: ") and code == 2
    assert code in (0, 1, 2, 3)
    assert not refused, f"{line}\n{said.getvalue()}"
    return None


def run_lines(card):
    """Run every line of a card; return the errors of open choices."""
    pythons, shells = lines_of(card, "Python: "), lines_of(card, "Shell: ")
    assert pythons
    errors = [*map(run_python, pythons), *map(run_shell, shells)]
    return [error for error in errors if error is not None]
