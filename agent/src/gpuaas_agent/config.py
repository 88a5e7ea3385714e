"""The settings file written at installation: the platform's address, and the one-time enrolment token."""

import json
from dataclasses import dataclass
from urllib.parse import urlsplit

from gpuaas_agent import files
from gpuaas_agent.errors import NotConfigured
from gpuaas_agent.places import Places


@dataclass(frozen=True)
class Config:
    api: str
    token: str = ""
    node_name: str = ""
    ca_file: str = ""
    gpu_model: str = ""
    address: str = ""

    @classmethod
    def load(cls, places: Places) -> "Config":
        text = files.read(places.config)
        if text is None:
            raise NotConfigured(f"{places.config} does not exist.", 'Write {"api": "https://…", "token": "…"} into it.')
        try:
            data = json.loads(text)
            config = cls(**{key: str(value) for key, value in data.items() if key in cls.__dataclass_fields__})
        except (ValueError, TypeError, AttributeError) as error:
            raise NotConfigured(f"{places.config} cannot be read: {error}.", "It must be a JSON object.") from error
        if urlsplit(config.api).scheme not in ("http", "https") or not urlsplit(config.api).hostname:
            raise NotConfigured(f"'{config.api}' is not an API address.", "Write it as https://host[:port].")
        return config


def forget_token(places: Places) -> None:
    """Remove the used enrolment token from the settings file. Other settings are kept as written."""
    text = files.read(places.config)
    data = json.loads(text) if text else {}
    if data.pop("token", None) is not None:
        files.write(places.config, json.dumps(data, indent=2) + "\n", 0o600)
