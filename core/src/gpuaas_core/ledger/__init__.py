"""What happened: events, audit rows, request ids already seen. Written in the same transaction as the change itself."""
