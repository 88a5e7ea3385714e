"""The only door to Slurm's daemons: every call of a Slurm client is written here, and its output is read here.

nodes, partitions, jobs, accounts, daemons   shell text for steps: one function per call, named by what it does
node_control                                 the same for reconcilers: runs on the controller's host, typed results
parse                                        reads what the clients print
hints                                        commands that people type
"""
