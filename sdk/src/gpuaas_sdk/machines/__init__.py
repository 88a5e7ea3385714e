"""Commands and files on the hosts of an operation: SSH with certificates that live for minutes."""
