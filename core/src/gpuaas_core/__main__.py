"""Starts the command `gpuaas-core`. No garbage is collected while its modules are imported: hundreds of models are
built, nothing of it is garbage, and the collections take a seventh of the CPU time of a start."""

import gc

gc.disable()

from .main import main  # noqa: E402 - collections are off first

gc.enable()

if __name__ == "__main__":
    main()
