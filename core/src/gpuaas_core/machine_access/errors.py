"""Errors of machine access."""

from ..kit.problems import Problem


class AuthorityRotates(Problem):
    status, code, title = 409, "authority_rotates", "SSH authority rotation already in progress"
    way_out = (
        "Wait until the rotation ends (`gpuaas ssh-authority list`), or take its next step"
        " (`gpuaas ssh-authority finish`)."
    )


class AuthorityInUse(Problem):
    status, code, title = 409, "authority_in_use", "The old SSH authority is still needed"
    way_out = (
        "Wait for the nodes and grants in `waits_for`, or send `force` to lock them out until they have caught up."
    )


class SshKeyNotAccepted(Problem):
    status, code, title = 422, "ssh_key_not_accepted", "SSH public key not accepted"
    way_out = "Send an Ed25519 OpenSSH public key on a single line (`ssh-ed25519 AAAA…`)."


class AllocationNotOfOperation(Problem):
    status, code, title = 404, "allocation_not_of_operation", "The claimed operation does not include this allocation"
    way_out = "Request access only to the allocations of the claimed operation's target."


class HostFenced(Problem):
    status, code, title = 409, "host_fenced", "Access to this host has ended permanently"
    way_out = "Finish without the host; when it is back, clean it, then resolve its orphan record."


class GrantOver(Problem):
    status, code, title = 409, "grant_over", "The certificate has expired"
    way_out = "It can no longer be used. `gpuaas grant list` shows the valid certificates."
