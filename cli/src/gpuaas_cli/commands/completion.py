"""`gpuaas completion bash|zsh|fish`: the completion script of a shell."""

from __future__ import annotations

from typing import Literal

from .. import show
from ..completing import SHELLS
from ..options import Common


def completion(shell: Literal["bash", "zsh", "fish"], /, *, common: Common = Common()) -> None:
    """Print a script for your shell that completes commands, options, and names of instances and nodes.

    Example: gpuaas completion bash > ~/.local/share/bash-completion/completions/gpuaas
    Example: gpuaas completion zsh > ~/.zfunc/_gpuaas
    Example: gpuaas completion fish > ~/.config/fish/completions/gpuaas.fish

    Parameters
    ----------
    shell
        Your shell.
    """
    if common.json:
        return show.as_json({"shell": shell, "script": SHELLS[shell]})
    print(SHELLS[shell], end="")
    return None
