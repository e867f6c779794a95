"""Whether a client has left: seen while its connection is not read, because a request waits for its answer."""

from __future__ import annotations

import socket


def has_left(sock: socket.socket) -> bool:
    """Whether the client has closed the connection, and had sent nothing more before that."""
    try:
        return not sock.recv(1, socket.MSG_PEEK)
    except (BlockingIOError, InterruptedError):
        return False
    except OSError:
        return True
