"""The addresses at which others reach this machine."""

from __future__ import annotations

import socket

import pytest

from moxing.framework.util.interfaces import open_interfaces


def test_open_interfaces_are_addresses_of_this_machine():
    addresses = open_interfaces()
    assert len(addresses) == len(set(addresses))
    for address in addresses:
        if not address.startswith("fe80"):
            with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as own:
                own.bind((address, 0))
        assert not address.startswith("127.") and address != "::1"


def test_the_address_that_leads_outside_is_open():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outward:
        try:
            outward.connect(("203.0.113.7", 9))  # sends nothing: the kernel only chooses the address
        except OSError as error:
            pytest.skip(f"no way outside: {error}")
        assert outward.getsockname()[0] in open_interfaces()
