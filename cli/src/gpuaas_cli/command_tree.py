"""The tree of commands: the first help page, and the module of each command. Used by main and completing.

Modules are named by strings, so that `gpuaas --help` loads none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import __version__

if TYPE_CHECKING:
    from cyclopts import App

HELP = """\
gpuaas: run GPU apps on your own machines.

Start here
  gpuaas login --api URL --email YOU     sign in; with --oidc PROVIDER through your identity provider
  gpuaas about                           the platform's version and features
  gpuaas whoami                          your account and your projects
  gpuaas catalog                         the apps you can deploy
  gpuaas allocation list                 the nodes you can deploy on

Instances
  gpuaas instance deploy APP --name N --place COMPONENT=ALLOCATION
  gpuaas instance list                   all instances, with state and health
  gpuaas instance show NAME              one instance in detail
  gpuaas instance watch NAME             follow its running operation
  gpuaas instance stop NAME              stop it; it keeps its nodes
  gpuaas instance start NAME             start it again
  gpuaas instance restart NAME           stop and start it
  gpuaas instance rotate-keys NAME       rotate its shared secrets
  gpuaas instance update NAME            change its inputs
  gpuaas instance upgrade NAME VERSION   upgrade it to another version of its app
  gpuaas instance rollback NAME          return to the version before the upgrade
  gpuaas instance decommission NAME      remove it from its nodes
  gpuaas access NAME                     how to use it: addresses, paths, commands

Members
  gpuaas member list NAME                the members of an instance and their nodes
  gpuaas member show NAME MEMBER         one member in detail
  gpuaas member add NAME COMPONENT ALLOCATION…
  gpuaas member drain NAME MEMBER        accept no new work and wait for running work
  gpuaas member undrain NAME MEMBER      accept work again
  gpuaas member restart NAME MEMBER      restart one member
  gpuaas member remove NAME MEMBER       remove one member and clean its node
  gpuaas member replace NAME MEMBER ALLOCATION
  gpuaas member retry NAME MEMBER        retry its failed operation
  gpuaas member tombstone NAME MEMBER    count a failed member as removed, without cleanup

Secrets
  gpuaas secret list NAME                names and versions of an instance's secrets
  gpuaas secret issue NAME SECRET        create a secret, or its next version
  gpuaas secret delete NAME SECRET       delete all versions
  gpuaas credential list                 the project's key pairs
  gpuaas credential show NAME            its public key, and which instance uses which version
  gpuaas credential create NAME          generate a key pair on the platform
  gpuaas credential import NAME FILE     import an existing private key
  gpuaas credential rotate NAME          add a new version beside the old one
  gpuaas credential complete-rotation NAME
  gpuaas credential revoke NAME          revoke it permanently
  gpuaas credential bind NAME INSTANCE   let an instance's controller use it
  gpuaas credential unbind NAME INSTANCE

Machine access
  gpuaas ssh NAME MEMBER                 a shell on the host of a member
  gpuaas grant list                      the valid certificates for access to hosts
  gpuaas grant revoke ID                 revoke a certificate and end its sessions
  gpuaas ssh-authority list              the certificate authorities and their rotation
  gpuaas ssh-authority rotate PURPOSE    start a rotation; access is not interrupted
  gpuaas ssh-authority finish PURPOSE    advance a rotation now

Operations and incidents
  gpuaas operation list                  all operations
  gpuaas operation show ID|NAME          progress, or the error and what to do
  gpuaas operation certificate ID|NAME   proof that its nodes are clean
  gpuaas operation retry ID|NAME         retry a failed operation
  gpuaas operation cancel ID|NAME        ask it to stop
  gpuaas operation cancel-batch ID       cancel all operations of one request
  gpuaas operation release-claim ID|NAME release it from a controller that hangs
  gpuaas operation abandon ID|NAME       end it without evidence
  gpuaas orphan list                     nodes that may not be clean
  gpuaas orphan resolve ID               declare such a node clean
  gpuaas triage ID|NAME                  why something failed, and what to do
  gpuaas events --follow                 live events
  gpuaas audit list                      who did or tried what
  gpuaas audit verify                    check that the audit trail was not altered
  gpuaas logout                          sign out

Nodes
  gpuaas node enrol NAME                 enrol a machine with a one-time token
  gpuaas node list                       the nodes of a tenant
  gpuaas node show NAME                  one node in detail, with its allowed actions
  gpuaas node cordon NAME                accept no new allocations; running work stays
  gpuaas node uncordon NAME              accept allocations again
  gpuaas node drain NAME                 ask for its allocations to be released
  gpuaas node retire NAME                remove an empty node from the platform
  gpuaas node readmit NAME --reason WHY  a new identity for a node that was copied or reinstalled
  gpuaas node upgrade NAME               upgrade its agent to the platform's version
  gpuaas node pool NAME POOL             move it into a pool
  gpuaas node wipe NAME                  retry a failed wipe
  gpuaas task list NODE                  the tasks of a node
  gpuaas task show NODE ID               one task and its result
  gpuaas pool create NAME                create a named set of nodes
  gpuaas pool delete NAME                delete an empty pool
  gpuaas pool list                       the pools of a tenant
  gpuaas sku list                        machine types and their hourly price
  gpuaas sku create NAME                 platform administrators: add a machine type
  gpuaas sku delete NAME                 platform administrators: delete a machine type
  gpuaas region list                     the regions of the platform
  gpuaas region create NAME              platform administrators: add a region
  gpuaas region delete NAME              platform administrators: delete a region
  gpuaas allocation create NODE          allocate a node to the project
  gpuaas allocation request --sku SKU    allocate nodes of a type; the platform picks them
  gpuaas allocation show NAME            one allocation in detail
  gpuaas allocation extend NAME          change the end of its lease
  gpuaas allocation release NAME         release the node
  gpuaas quota show                      the project's limits and usage
  gpuaas quota set                       set the project's limits

Apps and policies
  gpuaas app list                        all apps of the platform
  gpuaas app show APP                    one app, or one version with its manifest
  gpuaas app create APP                  app teams: create an app
  gpuaas app add-version APP MANIFEST    app teams: add a version
  gpuaas app versions APP                its versions and their states
  gpuaas app publish APP VERSION         let entitled projects deploy it
  gpuaas app deprecate APP VERSION       warn on deploy
  gpuaas app withdraw APP VERSION        no new deploys; running instances stay
  gpuaas entitlement list                the apps that the project may deploy
  gpuaas entitlement enable APP          let the project deploy an app
  gpuaas entitlement disable APP         no new deploys; running instances stay
  gpuaas policy show                     the effective policy of the project
  gpuaas policy explain FIELD VALUE      whether a value is allowed, and which policy decided
  gpuaas policy list                     the policies of the project, tenant or platform
  gpuaas policy set NAME                 create or change a policy
  gpuaas policy remove NAME              delete a policy

Artifacts
  gpuaas artifact list                   the artifacts that the project may use
  gpuaas artifact show NAME:VERSION      one artifact in detail
  gpuaas artifact push FILE --name N --version V
  gpuaas artifact register               register content of a source
  gpuaas artifact withdraw NAME:VERSION  stop delivering it
  gpuaas artifact-source list            the sources of artifacts
  gpuaas artifact-source show NAME       one source in detail
  gpuaas artifact-source add NAME URL    allow another source
  gpuaas artifact-source disable NAME    stop deliveries from it
  gpuaas artifact-source enable NAME     allow deliveries again
  gpuaas artifact-source remove NAME     delete it permanently
  gpuaas artifact-source set-credential NAME

People and permissions
  gpuaas iam explain PERMISSION          why an account may or may not do something
  gpuaas iam permissions                 your permissions in the project
  gpuaas iam members                     the members of the project and their roles
  gpuaas iam roles                       the roles and their permissions
  gpuaas iam bind WHO ROLE               grant a role
  gpuaas iam unbind BINDING              revoke a role
  gpuaas iam invite EMAIL                invite a person
  gpuaas iam invitations                 invitations and their state
  gpuaas iam revoke-invitation ID        revoke an invitation
  gpuaas iam bindings                    all role bindings of the tenant
  gpuaas iam create-role NAME KEY…       create a custom role
  gpuaas iam delete-role NAME            delete a custom role
  gpuaas deny-rule list                  permissions that are denied to everyone
  gpuaas deny-rule create KEY… --reason WHY
  gpuaas deny-rule remove ID             delete a deny rule
  gpuaas user list                       the users of a tenant
  gpuaas user create EMAIL               create a user with a password you choose
  gpuaas user disable WHO                sign a user out and block sign-in
  gpuaas user enable WHO                 allow sign-in again
  gpuaas tenant list                     the tenants you can see
  gpuaas tenant show NAME                one tenant
  gpuaas tenant create NAME              platform administrators: create a tenant
  gpuaas project list                    the projects you can see
  gpuaas project show                    the current project
  gpuaas project create NAME             create a project
  gpuaas delegation create ACCOUNT KEY…  let a service account act on your behalf
  gpuaas delegation list                 the delegations of the project
  gpuaas delegation revoke ID            revoke a delegation
  gpuaas break-glass open TENANT         platform administrators: temporary, announced access to a tenant
  gpuaas break-glass approve ID          approve another administrator's request
  gpuaas break-glass close ID            end it early
  gpuaas break-glass list                all uses of break-glass
  gpuaas identity-provider list          the tenant's OpenID providers
  gpuaas identity-provider show NAME     one provider, with the redirect addresses
  gpuaas identity-provider create NAME   add a provider for sign-in
  gpuaas identity-provider update NAME   change a provider, for example its secret
  gpuaas identity-provider delete NAME   delete a provider
  gpuaas accept                          create your account from an invitation
  gpuaas password                        change your password
  gpuaas session list                    your sessions
  gpuaas session revoke ID               end one of your sessions
  gpuaas service-account list            the project's service accounts
  gpuaas service-account create NAME --identity FILE
  gpuaas service-account keys NAME       its keys and their last use
  gpuaas service-account rotate NAME     add a new key beside the old one
  gpuaas service-account retire-key NAME KEY
  gpuaas service-account disable NAME    block it at once
  gpuaas service-account enable NAME     allow it again
  gpuaas service-account delete NAME     delete it with its keys, tokens and roles

Contexts, scripts and shells
  gpuaas context list                    the platforms you signed in to
  gpuaas context use NAME                make a platform the current one
  gpuaas context remove NAME             remove a platform from this computer
  gpuaas explain [CODE]                  what an error code means, and what to do
  gpuaas mcp                             serve an AI agent; with --allow-changes it may apply plans
  gpuaas completion bash|zsh|fish        print the completion script of your shell

Every command takes --help, -o json|yaml|table, --project, --api and --context. Commands that read take --watch;
commands that change something take --idempotency-key; destructive commands ask, or take --yes. Names or ids both work.
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
