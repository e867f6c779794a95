"""Clients that have left, where the event loop does not tell: while a request waits for its answer, and after a reset.

When a client resets its connection, libuv calls the reader once and never again. If there were bytes to receive as
well, that call receives them and not the reset.
"""

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


def has_event(sock: socket.socket) -> bool:
    """Whether there are bytes, an end or a reset to receive."""
    try:
        sock.recv(1, socket.MSG_PEEK)
    except (BlockingIOError, InterruptedError):
        return False
    except OSError:
        return True
    return True


def discard(sock: socket.socket, room: memoryview) -> bool:
    """Throw away what the client sends. True if it has closed the connection."""
    try:
        return sock.recv_into(room) == 0
    except (BlockingIOError, InterruptedError):
        return False
    except OSError:
        return True
