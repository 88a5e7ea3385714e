"""`gpuaas login`, `logout`, `whoami`."""

from __future__ import annotations

import getpass
import sys
from dataclasses import replace
from typing import Annotated

import gpuaas_sdk as sdk

from .. import failures, show
from ..config import Config
from ..failures import CliError
from ..options import Common, Flag
from ..session import connect, session


def login(*, email: str, password_stdin: Annotated[bool, Flag] = False, common: Common = Common()) -> int | None:
    """Sign in; the token is kept in ~/.config/gpuaas/config.json, for you alone.

    With --project, that project becomes the one you work in by default.

    Example: gpuaas login --api https://gpu.example --email ada@example.com
    Example: gpuaas login --api https://gpu.example --email ada@example.com --password-stdin < password

    Parameters
    ----------
    email
        Who you are.
    password_stdin
        Read the password from standard input instead of asking for it.
    """
    api = common.api or Config.effective().api
    if not api:
        raise CliError("Which platform?", "Add --api https://…", failures.USAGE)
    with connect(api) as client:
        try:
            token = client.sign_in(email, _password(password_stdin)).access_token
        except sdk.errors.Unauthenticated as error:
            failures.tell(str(error), "Check the address and the password.", code=error.code)
            return failures.SIGN_IN
    saved = Config.saved()
    default = common.project or (saved.project if (saved.api, saved.email) == (api.rstrip("/"), email) else "")
    Config(api=api.rstrip("/"), token=token, email=email, project=default).save()
    return whoami(common=replace(common, api=None))


def _password(from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\n")
    return getpass.getpass("Password: ")


def logout(*, common: Common = Common()) -> None:
    """Sign out here, and end the session on the platform.

    Example: gpuaas logout
    """
    try:
        with session(common) as at:
            at.client.sign_out()
    except (CliError, sdk.errors.Unauthenticated):
        pass  # it has ended already, which is what was asked for
    finally:
        replace(Config.saved(), token="").save()
    if common.json:
        show.as_json({"signed_in": False})
    else:
        print("Signed out.")


def whoami(*, common: Common = Common()) -> None:
    """Who you are to the platform, and where you may work.

    Example: gpuaas whoami
    Example: gpuaas whoami -o json
    """
    with session(common) as at:
        me = at.client.whoami()
    if common.json:
        return show.as_json(me)
    address = f" <{me.principal.email}>" if me.principal.email else ""
    print(f"You are {me.principal.name}{address}.")
    tenants = {tenant.id: tenant.name for tenant in me.tenants}
    if me.projects:
        print()
        rows = [(p.slug, p.name, tenants.get(p.tenant_id, ""), ", ".join(p.roles) or "-", p.id) for p in me.projects]
        show.table(("PROJECT", "NAME", "TENANT", "YOUR ROLES", "ID"), rows)
    else:
        print("You can see no project yet.")
