"""SSH access to hosts: authorities, certificates, access grants, the trust configuration of hosts, and revocation."""
