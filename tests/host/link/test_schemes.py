"""Every kind of link is reached through one table, and offers the same."""

from importlib import import_module
from inspect import signature

import pytest
from hypermon.hdl.layout import Geometry
from hypermon.host import link
from hypermon.host.errors import HypermonError
from hypermon.host.link import Found, Scheme


def parameters(function):
    return list(signature(function).parameters)


@pytest.mark.parametrize("kind", link._LINKS)
def test_a_kind_offers_what_is_declared(kind):
    module = import_module(link._LINKS[kind])
    assert parameters(module.open_board) == parameters(Scheme.open_board)[1:]
    assert all(found.uri.startswith(f"{kind}:") for found in module.find_boards())


def test_the_virtual_board_is_reached_as_any_other(monkeypatch):
    opened = []
    monkeypatch.setattr("hypermon.sim.virtual.open.open_virtual", lambda *said, **more: opened.append((said, more)))
    link.open_link("sim:")
    link.open_link("sim:a:b.csv", Geometry(nodes=3))
    assert opened == [(([], Geometry()), {"uri": "sim:", "seed": None}),
                      ((["a:b.csv"], Geometry(nodes=3)), {"uri": "sim:a:b.csv", "seed": None})]


def test_kinds_that_do_not_exist():
    for uri, reason in (("what:", "there is no link 'what'"),
                        ("sim", "there is no board")):
        with pytest.raises(HypermonError, match=reason):
            link.open_link(uri)


def test_all_kinds_are_asked(monkeypatch):
    for kind, name in link._LINKS.items():
        monkeypatch.setattr(import_module(name), "find_boards", lambda kind=kind: [Found(f"{kind}:", kind)])
    assert [found.what for found in link.find_boards()] == ["sim", "uart", "usb", "pcie", "tcp"]
