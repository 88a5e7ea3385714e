"""Names and addresses: pure, so the whole table can be checked."""

import pytest
from gpuaas_lab import firewall, plan
from gpuaas_lab.errors import BadName, NoAddressLeft
from gpuaas_lab.plan import FIRST_HOST, Plan


def test_the_default_lab_has_bridge_gpuaas0_and_network_10_88_0() -> None:
    default = Plan.of("default", 0)
    assert (default.bridge, str(default.gateway), default.cidr(11)) == ("gpuaas0", "10.88.0.1", "10.88.0.11/24")


def test_another_lab_gets_the_bridge_and_network_of_its_slot() -> None:
    other = Plan.of("anna", 7)
    assert (other.bridge, str(other.gateway), str(other.address(11))) == ("gpuaas7", "10.88.7.1", "10.88.7.11")


def test_a_network_of_ones_own_choice_is_used() -> None:
    assert str(Plan.of("default", 0, "192.168.77.0/24").gateway) == "192.168.77.1"


def test_no_two_labs_share_a_name_of_anything() -> None:
    one, two = Plan.of("default", 0), Plan.of("ctl", 1)
    assert plan.namespace("default", "ctl") != plan.namespace("ctl", "default")
    assert not plan.namespace("ctl", "x").startswith(plan.namespace_prefix("default"))
    assert not {one.bridge, one.nft_table, one.veth(11), one.mac(11)} & {
        two.bridge,
        two.nft_table,
        two.veth(11),
        two.mac(11),
    }


@pytest.mark.parametrize("slot", [0, 255])
def test_every_link_name_fits_into_the_kernels_fifteen_characters(slot: int) -> None:
    longest = Plan.of("a", slot)
    assert max(len(longest.bridge), len(longest.veth(250))) <= 15


@pytest.mark.parametrize("name", ["", "Upper", "a_b", "a.b", "-a", "a-", "9a", "a" * 21, "a/b", "a b", "a\n"])
def test_a_name_that_could_confuse_a_path_or_a_command_is_refused(name: str) -> None:
    with pytest.raises(BadName):
        plan.valid_name("host", name)


def test_the_lowest_free_address_is_taken_and_gaps_are_filled() -> None:
    assert plan.free_number({11, 12, 14}, FIRST_HOST) == 13


def test_a_full_network_says_so() -> None:
    with pytest.raises(NoAddressLeft):
        plan.free_number(set(range(11, 251)), FIRST_HOST)


def test_the_firewall_lets_only_the_api_ports_in_and_nothing_through() -> None:
    text = firewall.rules(Plan.of("default", 0), [8443, 8080])
    assert "ip daddr 10.88.0.1 tcp dport { 8080, 8443 } accept" in text
    assert 'iifname "gpuaas0" counter drop' in text
    assert 'oifname "gpuaas0" counter drop' in text
