"""The entry point of `gpuaas`: finds the command, runs it under one correlation id, and converts errors to exit codes.

Imports stay inside functions, so that `gpuaas --help` answers without loading the SDK.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from . import __version__, failures
from .command_tree import HELP, build_app

if TYPE_CHECKING:
    from collections.abc import Callable
    from inspect import BoundArguments

    from cyclopts import App

CLOSE = 0.8  # similarity of a typing mistake


def main(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        print(f"gpuaas {__version__}")
        return failures.OK
    if arguments in ([], ["--help"], ["-h"], ["help"]):
        print(HELP, end="")
        return failures.OK
    if arguments[:1] == ["__complete"]:
        from .completing import print_candidates

        print_candidates(arguments[1:])
        return failures.OK
    return _run(arguments)


def _run(arguments: list[str]) -> int:
    from gpuaas_sdk.client.correlation import correlation

    try:
        with correlation():
            return _command(arguments)() or failures.OK
    except KeyboardInterrupt:
        return failures.INTERRUPTED
    except EOFError:
        failures.tell("Cannot ask for input: standard input is closed.", "Use a terminal, or --password-stdin.")
        return failures.USAGE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader closed the pipe
        return failures.OK
    except Exception as error:
        return failures.tell_any(error)


def _command(arguments: list[str]) -> Callable[[], int | None]:
    """Parse the arguments and return the command, ready to be called. Raises CliError with exit code 2 on a usage
    error."""
    from functools import partial

    from . import context_flags, show
    from .destructive import confirm

    app = build_app()
    command, bound = _parse(app, arguments)
    common = bound.arguments.get("common")
    show.set_format(getattr(common, "output", "table"))
    context_flags.remember(common)
    if not getattr(common, "yes", False) and not bound.arguments.get("plan"):
        confirm(app.parse_commands(arguments)[0], bound.args)
    run_command = partial(command, *bound.args, **bound.kwargs)
    if not getattr(common, "watch", False):
        return run_command
    from .watch import watch

    return partial(watch, run_command, getattr(common, "every", 2.0))


def _parse(app: App, arguments: list[str]) -> tuple[Callable[..., int | None], BoundArguments]:
    from cyclopts.exceptions import CycloptsError

    try:
        command, bound, _ = app.parse_args(arguments, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        path = " ".join(app.parse_commands(arguments)[0])
        place = "Name a node with --place COMPONENT=ALLOCATION. " if path == "instance deploy" else ""
        way_out = f"{place}Run gpuaas {path} --help" if path else "Run gpuaas --help"
        raise failures.CliError(_without_guess(" ".join(str(error).split())), way_out, failures.USAGE) from None
    return command, bound


def _without_guess(message: str) -> str:
    """Remove the parser's "Did you mean" hint from the message if the suggested word differs much from the typed
    word."""
    import re
    from difflib import SequenceMatcher

    found = re.search(r'Unknown (?:option: |command )"?([^\s".]+)"?\. (Did you mean "?([^\s"?]+)"?\? ?)', message)
    if found and SequenceMatcher(None, found[1], found[3]).ratio() < CLOSE:
        return message.replace(found[2], "").strip()
    return message


def run() -> None:
    sys.exit(main(sys.argv[1:]))
