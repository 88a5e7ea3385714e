"""The HTTP layer between clients and the rooms (packages) of the core: it verifies callers, runs each write in one
transaction, returns the stored answer to a repeated request, and formats answers."""
