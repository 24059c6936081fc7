"""The command `longfat`: `commands` has one module a command, `app` the list of them."""

from __future__ import annotations

import atexit
import gc
import os
import sys

SYSTEM_ERROR = 1
BAD_INPUT = 2
CLAIM_FAILS = 3
CLAIM_UNDECIDED = 4
INTERRUPTED = 130
DEBUG = "LONGFAT_DEBUG"
_COLLECT_AFTER = 20_000
"""New objects before the garbage collector runs; the default of 700 takes 40 ms of a start of 230 ms."""
LONGEST_NAME = 120
"""Characters of a file's name in an error; a longer one, which the system rejected, fills a screen."""


def main() -> None:
    """Runs a command. Every failure is one line on standard error and a non-zero exit code.

    1: a system error (a full disk, a missing file), or a run without any result. 2: bad input.
    3: a claim fails, 4: a claim is undecided (`longfat run --fail-on`). 130: Ctrl-C.
    """
    # Imports create many objects that live until the exit: collections during them and at the end find none.
    gc.set_threshold(_COLLECT_AFTER)
    atexit.register(gc.freeze)
    try:
        code = _guarded()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed its end early. The interpreter must not flush into the closed pipe again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = SYSTEM_ERROR
    except KeyboardInterrupt:
        code = _interrupted()
    sys.exit(code)


def _guarded() -> int:
    import typer

    from longfat.cli.app import app

    try:
        result = typer.main.get_command(app).main(
            args=sys.argv[1:] or ["--help"], prog_name="longfat", standalone_mode=False
        )
        return result if isinstance(result, int) else 0
    except typer.TyperException as error:
        # The parser prefixes the messages of this project's own checks with the type of the exception.
        message = error.format_message().replace("Value error, ", "").rstrip(".")
        _report(f"{message} (see {_command(error)} --help)")
        return BAD_INPUT
    except typer.Abort:
        return _interrupted()
    except BrokenPipeError:
        raise
    except ValueError as error:
        if os.environ.get(DEBUG):
            raise
        _report(str(error))
        return BAD_INPUT
    except OSError as error:
        _report(describe(error))
        return SYSTEM_ERROR
    except RecursionError:
        if os.environ.get(DEBUG):
            raise
        _report("the input is nested too deeply")
        return BAD_INPUT
    except MemoryError:
        _report("not enough memory: run fewer trials or use a smaller file")
        return SYSTEM_ERROR
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        if os.environ.get(DEBUG):
            raise
        _report(f"internal error, please report it (traceback: {DEBUG}=1): {type(error).__name__}: {error}")
        return SYSTEM_ERROR


def _interrupted() -> int:
    _report("interrupted before there was a result")
    return INTERRUPTED


def _command(error: BaseException) -> str:
    """Returns the command of a parser's error."""
    context = getattr(error, "ctx", None)
    return context.command_path if context is not None else "longfat"


def describe(error: OSError) -> str:
    """Returns a system error as one line: its file, if any, and the system's reason.

    >>> describe(OSError(28, "No space left on device", "runs/arq/loss/run.json"))
    'runs/arq/loss/run.json: No space left on device'
    """
    reason = error.strerror or str(error) or type(error).__name__
    if not error.filename:
        return reason
    name = " ".join(str(error.filename).split())
    return f"{name if len(name) <= LONGEST_NAME else f'{name[: LONGEST_NAME - 3]}...'}: {reason}"


def _report(text: str) -> None:
    for line in text.splitlines() or [""]:
        print(f"longfat: {line}", file=sys.stderr)
