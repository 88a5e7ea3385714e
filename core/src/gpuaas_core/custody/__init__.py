"""Keys and certificates: the vault, a tenant's SSH authorities, certificates for hosts, people and controllers."""
