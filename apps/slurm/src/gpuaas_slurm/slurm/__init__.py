"""All calls of Slurm's clients and the parsing of their output. No other package of the app talks to Slurm's daemons.

nodes, partitions, jobs, accounts, daemons   shell text for steps, one function per call of a client
node_control                                 for reconcilers: runs on the controller's host, typed results
parse                                        parses the output of the clients
hints                                        commands for people
"""
