"""Reads image.toml: the content of the image, and the short hash that decides whether it must be rebuilt."""

import hashlib
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class Recipe:
    """The parsed image.toml."""

    text: str
    suite: str

    @classmethod
    def load(cls, suite: str) -> "Recipe":
        return cls(resources.files("gpuaas_lab").joinpath("image.toml").read_text(), suite)

    @property
    def data(self) -> dict[str, Any]:
        return tomllib.loads(self.text)

    @property
    def packages(self) -> list[str]:
        return [name for group in self.data["packages"].values() for name in group]

    @property
    def digest(self) -> str:
        """Return a hash of the recipe's content. Comments and the mirror do not change it."""
        meaning = f"{self.suite}\n{sorted_repr(self.data)}"
        return hashlib.sha256(meaning.encode()).hexdigest()[:12]


def sorted_repr(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{sorted_repr(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(sorted_repr(item) for item in value) + "]"
    return repr(value)
