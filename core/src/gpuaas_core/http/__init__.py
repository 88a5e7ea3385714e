"""Between HTTP and the rooms: verify the caller, open one transaction, detect repeats, answer in one format."""
