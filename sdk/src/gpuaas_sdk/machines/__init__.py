"""Commands and files on the hosts of an operation, over SSH with short-lived certificates."""
