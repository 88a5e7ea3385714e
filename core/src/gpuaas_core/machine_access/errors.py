"""Errors of machine access."""

from ..kit.problems import Problem


class AuthorityRotates(Problem):
    status, code, title = 409, "authority_rotates", "SSH authority rotation already in progress"
    way_out = (
        "Wait until the rotation ends (`gpuaas ssh-authority list`), or advance the rotation "
        "(`gpuaas ssh-authority finish`)."
    )


class AuthorityInUse(Problem):
    status, code, title = 409, "authority_in_use", "The old SSH authority is still in use"
    way_out = (
        "Wait until the nodes and grants in `waits_for` use the new authority; or send `force`: until they do, access "
        "through them fails."
    )


class SshKeyNotAccepted(Problem):
    status, code, title = 422, "ssh_key_not_accepted", "SSH public key not accepted"
    way_out = "Send an Ed25519 OpenSSH public key on a single line (`ssh-ed25519 AAAA…`)."


class AllocationNotOfOperation(Problem):
    status, code, title = 404, "allocation_not_of_operation", "The claimed operation does not include this allocation"
    way_out = "Request access only to the allocations of the claimed operation's target."


class HostFenced(Problem):
    status, code, title = 409, "host_fenced", "The host is fenced: all access to it is blocked"
    way_out = "Finish the operation without the host. When the host is back, clean it and resolve its orphan record."


class GrantOver(Problem):
    status, code, title = 409, "grant_over", "The certificate has expired"
    way_out = "An expired certificate does not need to be revoked. `gpuaas grant list` shows the valid certificates."
