"""The edge between HTTP and the rooms: verify the caller, open one transaction, catch repeats, answer in one shape."""
