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
  gpuaas about                           show the platform's version and features
  gpuaas whoami                          show your account and your projects
  gpuaas catalog                         list the apps you can deploy
  gpuaas allocation list                 list the nodes you can deploy on

Instances
  gpuaas instance deploy APP --name N --place COMPONENT=ALLOCATION
  gpuaas instance list                   list all instances, with state and health
  gpuaas instance show NAME              show an instance in detail
  gpuaas instance watch NAME             follow the running operation of an instance
  gpuaas instance stop NAME              stop an instance; it keeps its nodes
  gpuaas instance start NAME             start a stopped instance
  gpuaas instance restart NAME           restart an instance
  gpuaas instance rotate-keys NAME       rotate the shared secrets of an instance
  gpuaas instance update NAME            change the inputs of an instance
  gpuaas instance upgrade NAME VERSION   upgrade an instance to another version of its app
  gpuaas instance rollback NAME          roll an instance back to the version before the upgrade
  gpuaas instance decommission NAME      remove an instance from its nodes
  gpuaas access NAME                     show how to use an instance: addresses, paths, commands

Members
  gpuaas member list NAME                list the members of an instance and their nodes
  gpuaas member show NAME MEMBER         show a member in detail
  gpuaas member add NAME COMPONENT ALLOCATION…
  gpuaas member drain NAME MEMBER        let a member accept no new work, and wait until its running work ends
  gpuaas member undrain NAME MEMBER      let a drained member accept work again
  gpuaas member restart NAME MEMBER      restart a member
  gpuaas member remove NAME MEMBER       remove a member and clean its node
  gpuaas member replace NAME MEMBER ALLOCATION
  gpuaas member retry NAME MEMBER        retry the failed operation of a member
  gpuaas member tombstone NAME MEMBER    mark a failed member as removed, without cleaning its node

Secrets
  gpuaas secret list NAME                list the names and versions of an instance's secrets
  gpuaas secret issue NAME SECRET        create a secret, or its next version
  gpuaas secret delete NAME SECRET       delete all versions of a secret
  gpuaas credential list                 list the project's credentials (key pairs)
  gpuaas credential show NAME            show a public key, and which instance uses which version
  gpuaas credential create NAME          generate a key pair on the platform
  gpuaas credential import NAME FILE     import an existing private key
  gpuaas credential rotate NAME          add a new version of a credential
  gpuaas credential complete-rotation NAME
  gpuaas credential revoke NAME          revoke a credential permanently
  gpuaas credential bind NAME INSTANCE   let an instance's controller use a credential
  gpuaas credential unbind NAME INSTANCE

Machine access
  gpuaas ssh NAME MEMBER                 open a shell on the host of a member
  gpuaas grant list                      list the valid SSH certificates for access to hosts
  gpuaas grant revoke ID                 revoke an SSH certificate and end its sessions
  gpuaas ssh-authority list              list the SSH certificate authorities and their rotation
  gpuaas ssh-authority rotate PURPOSE    start a rotation; access is not interrupted
  gpuaas ssh-authority finish PURPOSE    advance a rotation now

Operations and incidents
  gpuaas operation list                  list all operations
  gpuaas operation show ID|NAME          show the progress of an operation, or its error and what to do
  gpuaas operation certificate ID|NAME   print the proof that the nodes of an operation are clean
  gpuaas operation retry ID|NAME         retry a failed operation
  gpuaas operation cancel ID|NAME        ask an operation to stop
  gpuaas operation cancel-batch ID       cancel all operations of one request
  gpuaas operation release-claim ID|NAME release an operation from a controller that hangs
  gpuaas operation abandon ID|NAME       force an operation to end, without proof of what it did
  gpuaas orphan list                     list the nodes that may not be clean
  gpuaas orphan resolve ID               declare a node clean after you inspected it
  gpuaas triage ID|NAME                  show why something failed, and what to do
  gpuaas events --follow                 print events live
  gpuaas audit list                      list who did or tried what
  gpuaas audit verify                    check that the audit trail was not altered
  gpuaas logout                          sign out

Nodes
  gpuaas node enrol NAME                 enrol a machine with a one-time token
  gpuaas node list                       list the nodes of a tenant
  gpuaas node show NAME                  show a node in detail, with its allowed actions
  gpuaas node cordon NAME                let a node accept no new allocations; running work stays
  gpuaas node uncordon NAME              let a node accept allocations again
  gpuaas node drain NAME                 ask projects to release the node before you retire it
  gpuaas node retire NAME                remove a node without allocations from the platform
  gpuaas node readmit NAME --reason WHY  give a node that was copied or reinstalled a new identity
  gpuaas node upgrade NAME               upgrade the agent of a node to the platform's version
  gpuaas node pool NAME POOL             move a node into a pool
  gpuaas node wipe NAME                  retry the failed wipe of a node
  gpuaas task list NODE                  list the tasks of a node
  gpuaas task show NODE ID               show a task and its result
  gpuaas pool create NAME                create a named set of nodes
  gpuaas pool delete NAME                delete an empty pool
  gpuaas pool list                       list the pools of a tenant
  gpuaas sku list                        list the machine types and their hourly prices
  gpuaas sku create NAME                 create a machine type (platform administrators)
  gpuaas sku delete NAME                 delete a machine type (platform administrators)
  gpuaas region list                     list the regions of the platform
  gpuaas region create NAME              create a region (platform administrators)
  gpuaas region delete NAME              delete a region (platform administrators)
  gpuaas allocation create NODE          allocate a node to the project
  gpuaas allocation request --sku SKU    allocate nodes of a machine type; the platform chooses them
  gpuaas allocation show NAME            show an allocation in detail
  gpuaas allocation extend NAME          change the end of an allocation's lease
  gpuaas allocation release NAME         release an allocation, so that its node is free again
  gpuaas quota show                      show the project's limits and usage
  gpuaas quota set                       set the project's limits

Apps and policies
  gpuaas app list                        list all apps of the platform
  gpuaas app show APP                    show an app, or one of its versions and the manifest
  gpuaas app create APP                  create an app (app teams)
  gpuaas app add-version APP MANIFEST    add an app version with its manifest (app teams)
  gpuaas app versions APP                list the versions of an app and their states
  gpuaas app publish APP VERSION         let entitled projects deploy an app version
  gpuaas app deprecate APP VERSION       deprecate an app version: every deploy shows a warning
  gpuaas app withdraw APP VERSION        stop new deploys of an app version; running instances stay
  gpuaas entitlement list                list the apps that the project may deploy
  gpuaas entitlement enable APP          let the project deploy an app
  gpuaas entitlement disable APP         stop new deploys of an app; running instances stay
  gpuaas policy show                     show the effective policy of the project
  gpuaas policy explain FIELD VALUE      explain whether a value is allowed, and which policy decides
  gpuaas policy list                     list the policies of the project, tenant or platform
  gpuaas policy set NAME                 create or change a policy
  gpuaas policy remove NAME              delete a policy

Artifacts
  gpuaas artifact list                   list the artifacts that the project may use
  gpuaas artifact show NAME:VERSION      show an artifact in detail
  gpuaas artifact push FILE --name N --version V
  gpuaas artifact register               register content of a source as an artifact
  gpuaas artifact withdraw NAME:VERSION  withdraw an artifact, so that it is no longer delivered
  gpuaas artifact-source list            list the sources of artifacts
  gpuaas artifact-source show NAME       show a source in detail
  gpuaas artifact-source add NAME URL    add a source
  gpuaas artifact-source disable NAME    stop the delivery of a source's artifacts
  gpuaas artifact-source enable NAME     re-enable a source, so that its artifacts are delivered again
  gpuaas artifact-source remove NAME     delete a source permanently
  gpuaas artifact-source set-credential NAME

People and permissions
  gpuaas iam explain PERMISSION          explain why an account has or does not have a permission
  gpuaas iam permissions                 list your permissions in the project
  gpuaas iam members                     list the members of the project and their roles
  gpuaas iam roles                       list the roles and their permissions
  gpuaas iam bind WHO ROLE               grant an account a role
  gpuaas iam unbind BINDING              revoke a role of an account
  gpuaas iam invite EMAIL                invite a person
  gpuaas iam invitations                 list the invitations and their states
  gpuaas iam revoke-invitation ID        revoke an invitation
  gpuaas iam bindings                    list all role bindings of the tenant
  gpuaas iam create-role NAME KEY…       create a custom role
  gpuaas iam delete-role NAME            delete a custom role
  gpuaas deny-rule list                  list the permissions that are denied to everyone
  gpuaas deny-rule create KEY… --reason WHY
  gpuaas deny-rule remove ID             delete a deny rule
  gpuaas user list                       list the users of a tenant
  gpuaas user create EMAIL               create a user with a password that you choose
  gpuaas user disable WHO                sign a user out and block sign-in
  gpuaas user enable WHO                 allow a user to sign in again
  gpuaas tenant list                     list the tenants you can see
  gpuaas tenant show NAME                show a tenant
  gpuaas tenant create NAME              create a tenant (platform administrators)
  gpuaas project list                    list the projects you can see
  gpuaas project show                    show the current project
  gpuaas project create NAME             create a project
  gpuaas delegation create ACCOUNT KEY…  let a service account act on your behalf
  gpuaas delegation list                 list the delegations of the project
  gpuaas delegation revoke ID            revoke a delegation
  gpuaas break-glass open TENANT         open temporary, announced access to a tenant (platform administrators)
  gpuaas break-glass approve ID          approve another administrator's request for access
  gpuaas break-glass close ID            end the access to a tenant early
  gpuaas break-glass list                list all uses of break-glass access
  gpuaas identity-provider list          list the tenant's OpenID providers
  gpuaas identity-provider show NAME     show a provider, with the redirect addresses
  gpuaas identity-provider create NAME   add a provider for sign-in
  gpuaas identity-provider update NAME   change a provider, for example its secret
  gpuaas identity-provider delete NAME   delete a provider
  gpuaas accept                          create your account from an invitation
  gpuaas password                        change your password
  gpuaas session list                    list your sessions
  gpuaas session revoke ID               revoke one of your sessions
  gpuaas service-account list            list the project's service accounts
  gpuaas service-account create NAME --identity FILE
  gpuaas service-account keys NAME       list the keys of a service account and their last use
  gpuaas service-account rotate NAME     add a new key; the old key stays valid
  gpuaas service-account retire-key NAME KEY
  gpuaas service-account disable NAME    disable a service account
  gpuaas service-account enable NAME     re-enable a service account
  gpuaas service-account delete NAME     delete a service account with its keys, tokens and roles

Contexts, scripts and shells
  gpuaas context list                    list the platforms you signed in to
  gpuaas context use NAME                make a platform the current platform
  gpuaas context remove NAME             remove a platform from this computer
  gpuaas explain [CODE]                  explain an error code and what to do
  gpuaas mcp                             serve an AI agent; with --allow-changes it may apply plans
  gpuaas completion bash|zsh|fish        print the completion script of your shell

Every command takes --help, -o json|yaml|table, --project, --api and --context. Commands that read take --watch;
commands that change something take --idempotency-key; destructive commands ask for confirmation unless you pass --yes.
Resources are named by their name or their id.
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
