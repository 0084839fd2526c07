"""The commands, a file each; they parse words, and what they call does the work."""

from ragnb.cli.commands.answer import answer_command
from ragnb.cli.commands.calibrate import calibrate_command
from ragnb.cli.commands.check import check_command
from ragnb.cli.commands.compare import accept_command, compare_command
from ragnb.cli.commands.evaluate import evaluate_command
from ragnb.cli.commands.example import example_command
from ragnb.cli.commands.generate import generate_command
from ragnb.cli.commands.init import init_command
from ragnb.cli.commands.inspect import inspect_command
from ragnb.cli.commands.judge import judge_command
from ragnb.cli.commands.open import open_command
from ragnb.cli.commands.plan import plan_command
from ragnb.cli.commands.report import report_command
from ragnb.cli.commands.run import run_command
from ragnb.cli.commands.runs import runs_command
from ragnb.cli.commands.verify import verify_command

COMMANDS = (
    example_command,
    inspect_command,
    init_command,
    run_command,
    open_command,
    generate_command,
    answer_command,
    evaluate_command,
    judge_command,
    report_command,
    check_command,
    compare_command,
    accept_command,
    calibrate_command,
    plan_command,
    runs_command,
    verify_command,
)
