"""Messages of a page that are queued while others are being written are written too."""

import asyncio

import pytest
from bokeh.document import Document
from panel.io import document

from workbench.pages.frame import unsent


class Socket:
    """Writes when it is let go."""

    def __init__(self):
        self.sent, self.open = [], asyncio.Event()

    async def write(self, message):
        self.sent.append(message)
        await self.open.wait()


class Connection:
    def __init__(self):
        self.protocol, self._socket = self, Socket()

    def create(self, kind, events):
        return events[0]


def handled(connection, events=None, msg=None):
    return [connection._socket.write(msg)]


async def sent_in_turn(connection):
    """What is written of two messages, the second queued while the first is on its way."""
    doc = Document()
    document.schedule_write_events(doc, [connection], ["first"])
    await asyncio.sleep(0)
    while not connection._socket.sent:
        await asyncio.sleep(0)
    # The second one's task begins only after the first one's has ended.
    connection._socket.open.set()
    document.schedule_write_events(doc, [connection], ["second"])
    for _ in range(20):
        await asyncio.sleep(0)
    return connection._socket.sent


@pytest.mark.parametrize("mended", [False, True])
def test_none_is_left_unsent(monkeypatch, mended):
    monkeypatch.setitem(document.extra_socket_handlers, Socket, handled)
    # Without the mend the second one is lost; where it is not, Panel no longer needs it.
    monkeypatch.setattr(document, "_dispatch_msgs", unsent._written)
    if mended:
        unsent.send_all()

    async def both():
        return await sent_in_turn(Connection())

    assert asyncio.run(both()) == (["first", "second"] if mended else ["first"])
