"""The proxy that makes trouble for other tests does what it says."""

import socket
import threading
from contextlib import suppress

import pytest

from stemma.testing.proxy import Proxy, Trouble


@pytest.fixture
def echo():
    """The port of a server that says back what it is told."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve(one: socket.socket) -> None:
            with one, suppress(OSError):  # the proxy breaks connections: that is its work
                while data := one.recv(100_000):
                    one.sendall(data)

        def listen() -> None:
            while True:
                try:
                    one, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(one,), daemon=True).start()

        threading.Thread(target=listen, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(echo):
    with Proxy(echo, seed=1) as proxy:
        yield proxy


def connected(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=10)


def said(one: socket.socket, words: bytes) -> bytes:
    """What comes back, as much as was said."""
    one.sendall(words)
    heard = b""
    while len(heard) < len(words) and (data := one.recv(100_000)):
        heard += data
    return heard


LONG = bytes(range(256)) * 100


def test_without_trouble_everything_passes(proxy):
    """On several connections, each its own."""
    with connected(proxy) as one, connected(proxy) as two:
        assert said(one, b"one") == b"one"
        assert said(two, LONG) == LONG
        assert len(proxy) == 2


def test_late_and_in_pieces_it_is_the_same(proxy):
    """In the order in which it was said."""
    proxy.make(Trouble(most=0.001, pieces=True))
    with connected(proxy) as one:
        assert said(one, LONG) == LONG


def test_a_silence_begins_at_once_and_ends(proxy):
    """On a connection that was there, and on one made during it; what was held back passes."""
    with connected(proxy) as one:
        assert said(one, b"before") == b"before"
        proxy.make(Trouble(silent=True))
        with connected(proxy) as two:
            for silenced in (one, two):
                silenced.settimeout(0.05)
                with pytest.raises(TimeoutError):
                    said(silenced, b"within")
            proxy.make(Trouble())
            for silenced in (one, two):
                silenced.settimeout(10)
                assert silenced.recv(6) == b"within"
                assert said(silenced, b"after") == b"after"


def test_a_refusal_breaks_what_was_there_and_ends(proxy):
    """At the same port afterwards."""
    with connected(proxy) as one:
        assert said(one, b"before") == b"before"
        proxy.make(Trouble(refuse=True))
        assert one.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            connected(proxy)
        assert len(proxy) == 0
    proxy.make(Trouble())
    with connected(proxy) as one:
        assert said(one, b"after") == b"after"


def test_a_connection_breaks_by_chance(proxy):
    """Sooner or later, and it is counted."""
    proxy.make(Trouble(pieces=True, breaks=0.5))
    with connected(proxy) as one:
        assert said(one, LONG) != LONG
    assert proxy.broken == 1


def test_a_server_that_is_gone_breaks_the_connection():
    """As it would without a proxy, a moment later."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with Proxy(taken.getsockname()[1]) as proxy, connected(proxy) as one:
            assert one.recv(1) == b""
