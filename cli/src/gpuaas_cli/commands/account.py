"""`gpuaas login`, `logout`, `whoami`, `password`, `accept`, `session list` and `revoke`."""

from __future__ import annotations

import getpass
import sys
from dataclasses import replace
from typing import Annotated

import gpuaas_sdk as sdk
from cyclopts import App

from .. import browser, failures, show
from ..config import Config, Contexts
from ..failures import CliError
from ..options import Common, Destroying, Flag, Looking
from ..session import connect, session

session_app = App(name="session", help="List and revoke your sessions.")


def login(
    *,
    email: str = "",
    password_stdin: Annotated[bool, Flag] = False,
    oidc: str = "",
    paste: Annotated[bool, Flag] = False,
    common: Common = Common(),
) -> int | None:
    """Sign in, and store the token in ~/.config/gpuaas/config.json, readable by you only.

    With --project, that project becomes your default. You can sign in to several platforms: each gets a context, named
    after its address or with --context.

    Example: gpuaas login --api https://gpu.example --email ada@example.com
    Example: gpuaas login --api https://gpu.example --email ada@example.com --password-stdin < password
    Example: gpuaas login --api https://gpu.example --oidc idp_01h…
    Example: gpuaas login --context night --api https://other.example --email ada@example.com

    Parameters
    ----------
    email
        The e-mail address of your account.
    password_stdin
        Read the password from standard input instead of asking for it.
    oidc
        Id of your tenant's identity provider: sign in with your browser at this provider.
    paste
        With --oidc, if the browser runs on another computer: paste the code that the browser shows.
    """
    file = Contexts.saved()
    known = file.known.get(common.context or "", Config())
    api = (common.api or known.api or (Config.effective().api if not common.context else "")).rstrip("/")
    if not api:
        raise CliError("No platform address is known.", "Add --api https://…", failures.USAGE)
    if not email and not oidc:
        raise CliError("No account was named.", "Add --email, or --oidc with your identity provider.", failures.USAGE)
    with connect(api) as client:
        try:
            if oidc:
                token = client.redeem_oidc_code(*browser.sign_in(api, oidc, paste=paste)).access_token
            else:
                token = client.sign_in(email, _password(password_stdin)).access_token
        except sdk.errors.Unauthenticated as error:
            failures.tell(str(error), "Check the address and the password.", code=error.code)
            return failures.SIGN_IN
    name = common.context or file.name_for(api)
    before = file.known.get(name, Config())
    default = common.project or (before.project if (before.api, before.email) == (api, email) else "")
    replace(file.put(name, Config(api, token, email, default)), current=name).save()
    return whoami(common=Looking(output=common.output, project=common.project, context=name))


def _password(from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\n")
    return getpass.getpass("Password: ")


def logout(*, common: Common = Common()) -> None:
    """Delete the token on this computer and end the session on the platform.

    Example: gpuaas logout
    """
    try:
        with session(common) as at:
            at.client.sign_out()
    except (CliError, sdk.errors.Unauthenticated):
        pass  # the session has ended already
    finally:
        _forget_token(common)
    if common.json:
        show.as_json({"signed_in": False})
    else:
        print("Signed out.")


def _forget_token(common: Common) -> None:
    file, chosen = Contexts.saved(), Config.effective(common.api, common.context)
    for name, one in file.known.items():
        if one == file.chosen(common.context, chosen.api):
            return file.put(name, replace(one, token="")).save()
    return None


def whoami(*, common: Looking = Looking()) -> None:
    """Show your account, your projects and your roles.

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
        if me.more_projects:
            print(f"\nThese are the first {len(me.projects)}; see them all: gpuaas project list")
    else:
        print("You have no project yet. A tenant administrator can add you to one.")


def password(*, password_stdin: Annotated[bool, Flag] = False, common: Common = Common()) -> None:
    """Change your password and end your other sessions.

    Example: gpuaas password
    Example: gpuaas password --password-stdin < two-lines

    Parameters
    ----------
    password_stdin
        Read the current and the new password from standard input, one per line.
    """
    with session(common) as at:
        current = _secret("Current password: ", password_stdin)
        ended = at.client.change_password(
            current_password=current, new_password=_secret("New password: ", password_stdin)
        ).ended_sessions
    if common.json:
        return show.as_json({"ended_sessions": ended})
    print(f"Your password is changed. Other sessions ended: {ended}.")
    return None


def accept(*, from_stdin: Annotated[bool, Flag] = False, common: Common = Common()) -> None:
    """Create your account from an invitation, with a password that you choose.

    Example: gpuaas accept --api https://gpu.example
    Example: gpuaas accept --api https://gpu.example --from-stdin < token-and-password

    Parameters
    ----------
    from_stdin
        Read the token and the password from standard input, one per line.
    """
    api = common.api or Config.effective(context=common.context).api
    if not api:
        raise CliError("No platform address is known.", "Add --api https://…", failures.USAGE)
    with connect(api) as client:
        token = _secret("Invitation token: ", from_stdin)
        me = client.accept_invitation(token, _secret("Password (at least 12 characters): ", from_stdin))
    if common.json:
        return show.as_json(me)
    print(f"Welcome, {me.name}. Now: gpuaas login --api {api} --email {me.email}")
    return None


def _secret(question: str, from_stdin: bool) -> str:
    return sys.stdin.readline().rstrip("\n") if from_stdin else getpass.getpass(question)


@session_app.command(name="list")
def list_sessions(*, common: Looking = Looking()) -> None:
    """List your sessions.

    Example: gpuaas session list
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_sessions))
    if common.json:
        return show.as_json(found)
    rows = [(s.id, s.address or "-", show.ago(s.created_at), "this one" if s.current else "") for s in found]
    return show.table(("ID", "FROM", "SIGNED IN", ""), rows)


@session_app.command
def revoke(session_id: str, *, common: Destroying = Destroying()) -> None:
    """Revoke one of your sessions. The token of the session stops working at once.

    Example: gpuaas session revoke ses_01h…

    Parameters
    ----------
    session_id
        Id of the session, see `gpuaas session list`.
    """
    with session(common) as at:
        ended = at.client.revoke_session(session_id)
    if common.json:
        return show.as_json(ended)
    print("The session has ended.")
    return None
