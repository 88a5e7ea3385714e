"""The entry point of `gpuaas`: finds the command, runs it under one correlation id, turns errors into exit codes.

Kept light: nothing heavy is imported before it is known what was asked for, so `gpuaas --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from . import __version__, failures

if TYPE_CHECKING:
    from collections.abc import Callable

    from cyclopts import App

HELP = """\
gpuaas: run GPU apps on your own machines.

Start here
  gpuaas login --api URL --email YOU     sign in; with --oidc PROVIDER through your own identity provider
  gpuaas about                           what answers there, and its version
  gpuaas whoami                          who you are, and your projects
  gpuaas catalog                         what you can deploy
  gpuaas allocation list                 where you can deploy it

Instances
  gpuaas instance deploy APP --name N --place COMPONENT=ALLOCATION
  gpuaas instance list                   what runs, and how it is
  gpuaas instance show NAME              all about one
  gpuaas instance watch NAME             join a running operation
  gpuaas instance stop NAME              stop it, its machines stay held
  gpuaas instance start NAME             start it again
  gpuaas instance restart NAME           both
  gpuaas instance rotate-keys NAME       what its members share, anew
  gpuaas instance update NAME            change its inputs
  gpuaas instance upgrade NAME VERSION   to another version of its app
  gpuaas instance rollback NAME          and back
  gpuaas instance decommission NAME      take it down
  gpuaas access NAME                     how to use it

Members
  gpuaas member list NAME                the parts of an instance and where they are
  gpuaas member show NAME MEMBER         all about one
  gpuaas member add NAME COMPONENT ALLOCATION…
  gpuaas member drain NAME MEMBER        let nothing new begin there
  gpuaas member undrain NAME MEMBER      bring it back
  gpuaas member restart NAME MEMBER      restart one
  gpuaas member remove NAME MEMBER       take one away
  gpuaas member replace NAME MEMBER ALLOCATION
  gpuaas member retry NAME MEMBER        try again what failed on it
  gpuaas member tombstone NAME MEMBER    give a failed one up

Secrets
  gpuaas secret list NAME                names and versions
  gpuaas secret issue NAME SECRET        a new one, or the next version of one
  gpuaas secret delete NAME SECRET       all versions
  gpuaas credential list                 the project's key pairs
  gpuaas credential show NAME            its public key, and who uses which version
  gpuaas credential create NAME          have the platform make one
  gpuaas credential import NAME FILE     bring a private key along
  gpuaas credential rotate NAME          a new version beside the old one
  gpuaas credential complete-rotation NAME
  gpuaas credential revoke NAME          for good
  gpuaas credential bind NAME INSTANCE   let an instance's controller use it
  gpuaas credential unbind NAME INSTANCE

Machine access
  gpuaas ssh NAME MEMBER                 a shell on the machine of a member, for minutes
  gpuaas grant list                      who can enter which machine now
  gpuaas grant revoke ID                 take a certificate back; its sessions end
  gpuaas ssh-authority list              what signs certificates, and who needs an old one
  gpuaas ssh-authority rotate PURPOSE    let a new one take over, while everything runs
  gpuaas ssh-authority finish PURPOSE    take the next step now

When something happens
  gpuaas operation list                  what was done
  gpuaas operation show ID|NAME          how far it is, or why it failed
  gpuaas operation certificate ID|NAME   what was proven of the machines it left
  gpuaas operation retry ID|NAME         try again
  gpuaas operation cancel ID|NAME        ask it to stop
  gpuaas operation release-claim ID|NAME  of a controller that hangs
  gpuaas operation abandon ID|NAME       give it up without evidence
  gpuaas orphan list                     what was given up and may be left somewhere
  gpuaas orphan resolve ID               somebody has looked
  gpuaas triage ID|NAME                  why it went wrong, and what to do
  gpuaas events --follow                 everything, live
  gpuaas audit list                      who did or tried what
  gpuaas audit verify                    whether that record is still what was written
  gpuaas logout                          sign out

Machines
  gpuaas node enrol NAME                 invite a machine with a one-time token
  gpuaas node list                       the machines of a tenant
  gpuaas node show NAME                  all about one, and what may be done with it
  gpuaas node cordon NAME                no new allocations; what runs stays
  gpuaas node uncordon NAME              takes allocations again
  gpuaas node drain NAME                 have it emptied
  gpuaas node retire NAME                for good, once it is empty
  gpuaas node readmit NAME --reason WHY  a new identity for a machine that was copied or installed anew
  gpuaas node upgrade NAME               its agent becomes the version the platform gives out
  gpuaas node pool NAME POOL             put it into a pool
  gpuaas node wipe NAME                  again, after a wipe that failed
  gpuaas task list NODE                  what it was told to do
  gpuaas task show NODE ID               and what it said
  gpuaas pool create NAME                a named set of machines
  gpuaas pool delete NAME                take an empty one away
  gpuaas pool list                       those there are
  gpuaas sku list                        kinds of machines, and what an hour costs
  gpuaas sku create NAME                 platform administrators: add one
  gpuaas sku delete NAME                 platform administrators: take one away
  gpuaas region list                     where machines stand
  gpuaas region create NAME              platform administrators: add one
  gpuaas region delete NAME              platform administrators: take one away
  gpuaas allocation create NODE          hold a machine for the project
  gpuaas allocation request --sku SKU    hold machines of a kind, picked for you
  gpuaas allocation show NAME            all about one
  gpuaas allocation extend NAME          move the end of its lease
  gpuaas allocation release NAME         give it back
  gpuaas quota show                      what the project may hold, and holds
  gpuaas quota set                       bound it

What may be deployed
  gpuaas app list                        all apps of the platform
  gpuaas app show APP                    one of them, or one version with its manifest
  gpuaas app create APP                  app teams: a new one
  gpuaas app add-version APP MANIFEST    app teams: a version of it
  gpuaas app versions APP                its versions, and what may be done with each
  gpuaas app publish APP VERSION         let entitled projects deploy it
  gpuaas app deprecate APP VERSION       deploys with a warning
  gpuaas app withdraw APP VERSION        deploys no more; what runs stays
  gpuaas entitlement list                what the project is entitled to, until when
  gpuaas entitlement enable APP          let the project deploy it
  gpuaas entitlement disable APP         no more deploys; says what keeps running
  gpuaas policy show                     what all policies together leave for the project
  gpuaas policy explain FIELD VALUE      whether a value is allowed, and who decided
  gpuaas policy list                     the policies of the project, tenant or platform
  gpuaas policy set NAME                 make or change one
  gpuaas policy remove NAME              take one away

What machines are given
  gpuaas artifact list                   what the project may use
  gpuaas artifact show NAME:VERSION      all about one
  gpuaas artifact push FILE --name N --version V
  gpuaas artifact register               register what a source has
  gpuaas artifact withdraw NAME:VERSION  deliver it to nobody any more
  gpuaas artifact-source list            where artifacts may come from
  gpuaas artifact-source show NAME       all about one
  gpuaas artifact-source add NAME URL    allow a further place
  gpuaas artifact-source disable NAME    nothing comes from it any more
  gpuaas artifact-source enable NAME     it may deliver again
  gpuaas artifact-source remove NAME     for good
  gpuaas artifact-source set-credential NAME

Who may do what
  gpuaas iam explain PERMISSION          why you, or somebody else, may or may not
  gpuaas iam permissions                 every permission you hold in the project
  gpuaas iam members                     who holds which role in the project
  gpuaas iam roles                       the roles there are, and what they hold
  gpuaas iam bind WHO ROLE               give a role
  gpuaas iam unbind BINDING              take it away
  gpuaas iam invite EMAIL                invite a person
  gpuaas iam invitations                 who is invited, and whether they came
  gpuaas iam revoke-invitation ID        take one back
  gpuaas iam bindings                    every role given in the tenant
  gpuaas iam create-role NAME KEY…       a role of the tenant's own
  gpuaas iam delete-role NAME            take it away
  gpuaas deny-rule list                  what nobody may do, whatever their role
  gpuaas deny-rule create KEY… --reason WHY
  gpuaas deny-rule remove ID             roles count again
  gpuaas user list                       the people of a tenant
  gpuaas user create EMAIL               an account with a password you choose
  gpuaas user disable WHO                out at once
  gpuaas user enable WHO                 may sign in again
  gpuaas tenant list                     the tenants you can see
  gpuaas tenant show NAME                one of them
  gpuaas tenant create NAME              platform administrators: a new one
  gpuaas project list                    the projects you can see
  gpuaas project show                    the one you work in
  gpuaas project create NAME             a new one
  gpuaas delegation create ACCOUNT KEY…  let a service account act on your behalf
  gpuaas delegation list                 what is lent in the project
  gpuaas delegation revoke ID            end it
  gpuaas break-glass open TENANT         platform administrators: look into a tenant, announced
  gpuaas break-glass approve ID          let another administrator act in it
  gpuaas break-glass close ID            end it
  gpuaas break-glass list                all there were
  gpuaas identity-provider list          the tenant's own OpenID providers
  gpuaas identity-provider show NAME     one of them, with the addresses to register there
  gpuaas identity-provider create NAME   let people sign in through one
  gpuaas identity-provider update NAME   change it, its secret for one
  gpuaas identity-provider delete NAME   nobody signs in through it any more
  gpuaas accept                          make your account from an invitation
  gpuaas password                        change your password
  gpuaas session list                    where you are signed in
  gpuaas session revoke ID               end one of your sessions
  gpuaas service-account list            the project's service accounts
  gpuaas service-account create NAME --identity FILE
  gpuaas service-account keys NAME       their keys, and when each was used last
  gpuaas service-account rotate NAME     a new key beside the old one
  gpuaas service-account retire-key NAME KEY
  gpuaas service-account disable NAME    out at once
  gpuaas service-account enable NAME     may sign in again
  gpuaas service-account delete NAME     gone, with keys, tokens and roles

Several platforms, scripts and shells
  gpuaas context list                    the platforms you signed in to
  gpuaas context use NAME                talk to this one from now on
  gpuaas context remove NAME             forget one
  gpuaas explain [CODE]                  what an error means, and what to do
  gpuaas mcp                             serve an agent; with --allow-changes it applies what it planned
  gpuaas completion bash|zsh|fish        let your shell complete commands and names

Every command takes --help, -o json|yaml|table, --project, --api and --context; those that look take --watch, those that
change something --idempotency-key. Names or ids, as you like.
Example: gpuaas instance deploy slurm --name train --place controller=node-a
"""

COMMANDS = {
    "login": "account:login",
    "logout": "account:logout",
    "whoami": "account:whoami",
    "catalog": "listing:catalog",
    "app": "catalog:app",
    "policy": "policy:app",
    "entitlement": "catalog:entitlement",
    "allocation": "machines:allocation",
    "node": "machines:node",
    "pool": "offers:pool",
    "sku": "offers:sku",
    "region": "offers:region",
    "quota": "offers:quota",
    "artifact": "artifact:app",
    "artifact-source": "artifact:source",
    "instance": "instance:app",
    "access": "instance:access",
    "member": "member:app",
    "operation": "operation:app",
    "orphan": "orphan:app",
    "task": "task:app",
    "secret": "secret:app",
    "credential": "credential:app",
    "grant": "grant:app",
    "ssh": "ssh:ssh",
    "ssh-authority": "ssh_authority:app",
    "events": "events:events",
    "about": "tenancy:about",
    "tenant": "tenancy:tenant_app",
    "project": "tenancy:project_app",
    "user": "tenancy:user_app",
    "deny-rule": "deny_rule:app",
    "audit": "audit:app",
    "iam": "iam:app",
    "delegation": "delegation:app",
    "break-glass": "break_glass:app",
    "identity-provider": "identity_provider:app",
    "service-account": "service_account:app",
    "session": "account:session_app",
    "password": "account:password",
    "accept": "account:accept",
    "triage": "triage:triage",
    "context": "context:app",
    "explain": "explain:explain",
    "completion": "completion:completion",
    "mcp": "mcp:mcp",
}


def build_app() -> App:
    from cyclopts import App

    app = App(name="gpuaas", help=HELP, version=__version__, help_format="plaintext", result_action="return_value")
    for name, where in COMMANDS.items():
        app.command(f"gpuaas_cli.commands.{where}", name=name)
    return app


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
        failures.tell("There is nobody to ask: standard input is closed.", "Use a terminal, or --password-stdin.")
        return failures.USAGE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left; nothing more to say
        return failures.OK
    except Exception as error:
        return failures.tell_any(error)


def _command(arguments: list[str]) -> Callable[[], int | None]:
    """What was asked for, ready to be called; what was not understood ends here with 2."""
    from functools import partial

    from . import context_flags, show
    from .destructive import confirm

    app = build_app()
    command, bound, _ = app.parse_args(arguments)
    common = bound.arguments.get("common")
    show.speak(getattr(common, "output", "table"))
    context_flags.remember(common)
    if not getattr(common, "yes", False) and not bound.arguments.get("plan"):
        confirm(app.parse_commands(arguments)[0], bound.args)
    look = partial(command, *bound.args, **bound.kwargs)
    if not getattr(common, "watch", False):
        return look
    from .watch import watch

    return partial(watch, look, getattr(common, "every", 2.0))


def run() -> None:
    sys.exit(main(sys.argv[1:]))
