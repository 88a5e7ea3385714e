"""Restricts what a lab host can reach on this machine: the API port, ping, and replies.

One nftables table per lab, replaced as a whole in one transaction, so there is no moment without rules.
"""

from collections.abc import Iterable

from gpuaas_lab.plan import Plan
from gpuaas_lab.run import run, succeeds

RULES = """\
table inet {table} {{ }}
delete table inet {table}
table inet {table} {{
  chain input {{
    type filter hook input priority -10; policy accept;
    iifname != "{bridge}" accept
    ct state established,related accept
    meta l4proto {{ icmp, ipv6-icmp }} accept
    {api}
    counter drop
  }}
  chain forward {{
    type filter hook forward priority -10; policy accept;
    iifname "{bridge}" oifname "{bridge}" accept
    iifname "{bridge}" counter drop
    oifname "{bridge}" counter drop
  }}
}}
"""


def rules(plan: Plan, api_ports: Iterable[int]) -> str:
    ports = ", ".join(str(port) for port in sorted(set(api_ports)))
    api = f"ip daddr {plan.gateway} tcp dport {{ {ports} }} accept" if ports else ""
    return RULES.format(table=plan.nft_table, bridge=plan.bridge, api=api)


def apply(plan: Plan, api_ports: Iterable[int]) -> None:
    run(["nft", "-f", "-"], input=rules(plan, api_ports).encode())


def exists(table: str) -> bool:
    return succeeds(["nft", "list", "table", "inet", table])


def remove(table: str) -> None:
    if exists(table):
        run(["nft", "delete", "table", "inet", table])
