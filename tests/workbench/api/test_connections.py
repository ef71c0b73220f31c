"""Connections: more than a server takes are refused in one line, and it goes on serving."""

import asyncio
import os
import socket
from contextlib import suppress

import pytest
from tornado.httpserver import HTTPServer
from tornado.web import Application
from tornado.websocket import WebSocketHandler

from workbench.api.connections import Server, bounded, room


def theirs(application):
    """A server as a library makes it."""
    server = HTTPServer(application)
    bounded(server)
    return server


@pytest.mark.parametrize("made", [Server, theirs])
def test_a_full_server_says_so_and_serves_again_once_there_is_room(made, caplog):
    async def answer(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        said = await reader.read()
        writer.close()
        return said

    async def run():
        server = made(Application())
        server.most = 3
        server.listen(0, "127.0.0.1")
        [listening] = server._sockets.values()
        port = listening.getsockname()[1]
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        full = await reader.read()
        for _, held in (*idle, (reader, writer)):
            held.close()
        while server.open:
            await asyncio.sleep(0.01)
        after = await answer(port)
        server.stop()
        await server.close_all_connections()
        return full, after, server.open

    full, after, left = asyncio.run(run())
    assert full.startswith(b"HTTP/1.1 503 ") and b"3 connections are open" in full
    assert after.startswith(b"HTTP/1.1 404 ") and left == 0
    assert not [said for said in caplog.records if said.exc_info]


def test_a_websocket_is_counted_until_it_closes():
    async def run():
        server = Server(Application([("/", WebSocketHandler)]))
        server.listen(0, "127.0.0.1")
        [listening] = server._sockets.values()
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        writer.write(
            b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MTIzNDU2Nzg5MDEyMzQ1Ng==\r\n\r\n"
        )
        said, held = await reader.readuntil(b"\r\n"), server.open
        writer.close()
        while server.open:
            await asyncio.sleep(0.01)
        server.stop()
        await server.close_all_connections()
        return said, held

    said, held = asyncio.run(run())
    assert b" 101 " in said and held == 1


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nX-Long: " + b"x" * 5000 + b"\r\n\r\n",
        b"GET /" + b"x" * 5000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 400_000 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 1000,  # and then nothing
        b"\x16\x03\x01" * 2000,
    ],
    ids=["value", "line", "many", "unfinished", "binary"],
)
def test_headers_that_are_too_long_are_431_whoever_still_sends(sent, caplog):
    async def run():
        server = Server(Application(), max_header_size=4096)
        server.listen(0, "127.0.0.1")
        [listening] = server._sockets.values()
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        whole = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"  # on the same connection
        writer.write(whole)
        first = await reader.readuntil(b"</html>")
        writer.write(sent)
        said = await reader.read()
        writer.close()
        server.stop()
        await server.close_all_connections()
        return first, said, server.open

    first, said, left = asyncio.run(run())
    assert first.startswith(b"HTTP/1.1 404 ") and left == 0
    assert said.startswith(b"HTTP/1.1 431 ") and b"longer than 4096 bytes" in said
    assert not [said for said in caplog.records if said.exc_info]


@pytest.mark.skipif(os.name != "posix", reason="descriptors are limited on POSIX")
@pytest.mark.parametrize("late", [False, True])
def test_whoever_comes_when_no_descriptor_is_left_is_told_so(caplog, late):
    """Others of the process took them, or the limit was lowered after the server had begun."""
    import resource

    async def run():
        server = HTTPServer(Application()) if late else Server(Application())
        server.listen(0, "127.0.0.1")
        if late:
            bounded(server)
        [listening] = server._sockets.values()
        where, limits = listening.getsockname(), resource.getrlimit(resource.RLIMIT_NOFILE)
        clients = [socket.socket() for _ in range(3)]
        taken, said = [os.dup(0)], []
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(taken[0] + 8, 64), limits[1]))
        try:
            with suppress(OSError):
                while True:
                    taken.append(os.dup(0))
            for client in clients:
                client.setblocking(False)
                await asyncio.get_running_loop().sock_connect(client, where)
                said.append(await asyncio.get_running_loop().sock_recv(client, 4096))
        finally:
            for each in taken:
                os.close(each)
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            for client in clients:
                client.close()
        reader, writer = await asyncio.open_connection(*where)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        again = await reader.read()
        writer.close()
        server.stop()
        return said, again

    said, again = asyncio.run(run())
    assert all(each.startswith(b"HTTP/1.1 503 ") and b"descriptor" in each for each in said)
    assert len(said) == 3 and again.startswith(b"HTTP/1.1 404 ")
    assert not [said for said in caplog.records if said.exc_info]


def test_connections_leave_descriptors_for_what_else_opens_files(monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    assert room() == 16
    asked = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 1 << 20))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: asked.append(pair))
    assert room() == 4080 and asked == [(8192, 1 << 20)]
