"""Asks brokers whether they live, at the addresses that the image has of them."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

from strandline.errors import UnsupportedVersion
from strandline.metadata.controller.deaths import Sign
from strandline.metadata.image import Images
from strandline.wire.broker_connection import BrokerConnection
from strandline.wire.primitives import MalformedRequest

ASK_SECONDS: Final = 0.3


class BrokerInquiry:
    """One connection for each question: whether there is one is what is asked."""

    def __init__(self, node_id: int, images: Images, *, listener: str) -> None:
        self._client_id, self._images, self._listener = f"broker-{node_id}-inquiry", images, listener

    async def ask(self, node_id: int) -> Sign:
        """What comes of asking this broker, within ASK_SECONDS.

        A connection that is refused, or ended without an answer, is a sign of its own: the system does that for a
        process that is gone, at once, and a broker that runs does not.
        """
        broker = self._images.image.brokers.get(node_id)
        listener = None if broker is None else broker.listener(self._listener)
        if listener is None:
            return Sign.SILENT
        try:
            async with asyncio.timeout(ASK_SECONDS):
                hosts = await _addresses(listener.host, listener.port)
                signs = [await self._ask(host, listener.port) for host in hosts]
        except OSError:  # no way to it, no such name, or no answer in time
            return Sign.SILENT
        return Sign.ANSWERED if Sign.ANSWERED in signs else Sign.REFUSED

    async def _ask(self, host: str, port: int) -> Sign:
        try:
            connection = await BrokerConnection.open(host, port, client_id=self._client_id)
        except ConnectionError:
            return Sign.REFUSED
        except (MalformedRequest, UnsupportedVersion):
            return Sign.ANSWERED
        connection.close()
        return Sign.ANSWERED


async def _addresses(host: str, port: int) -> list[str]:
    """One by one: of several addresses that are tried together, the driver does not say what came of each."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for _, _, _, _, address in found]
