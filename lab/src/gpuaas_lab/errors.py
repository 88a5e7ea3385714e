"""Errors of the lab, each with a sentence and what to do. The CLI prints both and exits with `exit`.

LabError
├── NotLinux, NotRoot, ToolsMissing, KernelMissing      this machine cannot run a lab (yet)
├── LabBusy                                             another command works on the same lab right now
├── UnknownHost, HostOff, HostDidNotBoot, HostNeedsDisk about one host
├── ExecTimeout, CommandFailed                          a command timed out or failed
├── ImageFailed, ImageInUse, NoAptSource                the image could not be built, or is needed
├── BadName, NoAddressLeft, CleanupIncomplete
└── EnrolFailed                                         the host is up, but its enrolment failed
"""

from collections.abc import Sequence


class LabError(Exception):
    """Base class: `str(error)` is the sentence, `way_out` is what the person can do now."""

    exit = 1

    def __init__(self, sentence: str, way_out: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.way_out = way_out


class NotLinux(LabError):
    exit = 2

    def __init__(self, system: str) -> None:
        super().__init__(
            f"The lab needs Linux; this is {system}.",
            "Run it on a Debian 12 machine or virtual machine.",
        )


class NotRoot(LabError):
    exit = 2

    def __init__(self) -> None:
        super().__init__(
            "The lab needs root: it creates network namespaces, mounts and boots hosts.",
            "Run the same command with sudo, or as root.",
        )


class ToolsMissing(LabError):
    exit = 2

    def __init__(self, tools: Sequence[str], packages: Sequence[str]) -> None:
        super().__init__(
            f"These programs are missing: {', '.join(tools)}.",
            f"apt-get install {' '.join(packages)}",
        )


class KernelMissing(LabError):
    exit = 2


class LabBusy(LabError):
    def __init__(self, lab: str, waited: float) -> None:
        super().__init__(
            f"Another command has been working on lab '{lab}' for more than {waited:.0f} s.",
            "Wait for it to end, or use another lab with --lab NAME.",
        )


class UnknownHost(LabError):
    def __init__(self, host: str, known: Sequence[str]) -> None:
        names = ", ".join(known) or "none"
        super().__init__(f"There is no host '{host}' in this lab (known: {names}).", "gpuaas-lab status")


class HostOff(LabError):
    def __init__(self, host: str) -> None:
        super().__init__(f"Host '{host}' is powered off.", f"gpuaas-lab boot {host}")


class HostDidNotBoot(LabError):
    def __init__(self, host: str, why: str, console: str, tail: str) -> None:
        super().__init__(
            f"Host '{host}' did not boot: {why}. Last lines of its console:\n{tail or '  (nothing was printed)'}",
            f"Read {console}; then `gpuaas-lab down` and `gpuaas-lab up` start again.",
        )


class HostNeedsDisk(LabError):
    def __init__(self, host: str) -> None:
        super().__init__(
            f"Host '{host}' has no disk of its own to fill; filling it would fill this machine.",
            "Bring the host up with a limited disk: gpuaas-lab up --disk 512M (python: up(..., disk_mb=512)).",
        )


class ExecTimeout(LabError):
    exit = 124

    def __init__(self, what: str, timeout: float) -> None:
        super().__init__(
            f"'{what}' did not end within {timeout:g} s and was killed.",
            "Give it more time (--timeout) or find out why it hangs.",
        )


class CommandFailed(LabError):
    def __init__(self, what: str, code: int, detail: str) -> None:
        super().__init__(
            f"'{what}' failed with exit code {code}: {detail.strip()[-1500:] or '(no output)'}",
            "`gpuaas-lab down` removes what was partly created.",
        )
        self.code = code


class ImageFailed(LabError):
    pass


class ImageInUse(LabError):
    def __init__(self, labs: Sequence[str]) -> None:
        super().__init__(
            f"The lab is removed, but the image stays: other labs run on it ({', '.join(labs)}).",
            "Remove those first (gpuaas-lab down --lab NAME), then repeat `gpuaas-lab down --image`.",
        )


class NoAptSource(LabError):
    def __init__(self, codename: str) -> None:
        super().__init__(
            f"No apt source of this machine offers Debian '{codename}' main.",
            "Set GPUAAS_LAB_MIRROR to a Debian mirror (and GPUAAS_LAB_SUITE to its release name).",
        )


class BadName(LabError):
    exit = 2

    def __init__(self, kind: str, name: str, rule: str) -> None:
        super().__init__(f"'{name}' is not a valid {kind} name.", f"Use {rule}.")


class NoAddressLeft(LabError):
    pass


class CleanupIncomplete(LabError):
    def __init__(self, left: Sequence[str]) -> None:
        super().__init__(
            f"Not everything could be removed: {'; '.join(left)}.",
            "Close the programs that use it (for example a shell inside a mount) and run `gpuaas-lab down` again.",
        )


class EnrolFailed(LabError):
    pass
