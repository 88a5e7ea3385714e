"""Shell text that reads and changes partitions."""

# When Slurm has taken up its settings, what it then shows of its partitions is kept on the controller's host: as long
# as both are equal, settings that did not change need no reconfigure. What workers add is left out.
TAKEN_UP = '"$OWN/taken_up"'


def list_details() -> str:
    """Return the shell command that prints one partition per line, for parse.fields."""
    return "timeout 5 scontrol -o show partition"


def list_names() -> str:
    return f"{list_details()} | sed -n 's/^PartitionName=\\([^ ]*\\).*/\\1/p'"


def set_state(partition: str, state: str) -> str:
    return f"timeout 5 scontrol update partitionname={partition} state={state}"


DEFINE_AS_READ = rf"""
as_read() {{ {list_details()} | sed -E 's/ (Nodes|TotalCPUs|TotalNodes|TRES)=[^ ]*//g' | sort; }}
"""
