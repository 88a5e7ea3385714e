"""Keys and certificates: the embedded vault, a tenant's SSH authorities, certificates for machines and controllers."""
