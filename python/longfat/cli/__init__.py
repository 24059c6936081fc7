"""The command `longfat`. What it does is in one module a command; `app` holds the list."""

from __future__ import annotations

import os
import sys

BAD_INPUT = 2
SYSTEM_ERROR = 1
INTERRUPTED = 130
DEBUG = "LONGFAT_DEBUG"


def main() -> None:
    """Runs a command; whatever goes wrong ends in one clear line on standard error and a non-zero exit code.

    2: bad input. 1: the system refused (a full disk, a missing file), or the run measured nothing.
    130: Ctrl-C.
    """
    try:
        code = _guarded()
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has seen enough. The interpreter must not flush into the closed pipe again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = SYSTEM_ERROR
    except KeyboardInterrupt:
        code = INTERRUPTED
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
        # Of a check that is written here, the parser tells which exception it was.
        told = error.format_message().replace("Value error, ", "").rstrip(".")
        _say(f"{told} ({_command(error)} --help shows what there is)")
        return BAD_INPUT
    except typer.Abort:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except ValueError as error:
        if os.environ.get(DEBUG):
            raise
        _say(str(error))
        return BAD_INPUT
    except OSError as error:
        _say(describe(error))
        return SYSTEM_ERROR
    except MemoryError:
        _say("not enough memory: ask for fewer trials or a smaller file")
        return SYSTEM_ERROR
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        if os.environ.get(DEBUG):
            raise
        _say(f"internal error, please report it ({DEBUG}=1 shows where): {type(error).__name__}: {error}")
        return SYSTEM_ERROR


def _command(error: BaseException) -> str:
    """The command that an error of the parser is about."""
    context = getattr(error, "ctx", None)
    return context.command_path if context is not None else "longfat"


def describe(error: OSError) -> str:
    """A system error as one line: the file if it is about one, and what the system said.

    >>> describe(OSError(28, "No space left on device", "runs/arq/loss/run.json"))
    'runs/arq/loss/run.json: No space left on device'
    """
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {reason}" if error.filename else reason


def _say(text: str) -> None:
    for line in text.splitlines() or [""]:
        print(f"longfat: {line}", file=sys.stderr)
