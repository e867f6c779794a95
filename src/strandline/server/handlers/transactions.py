"""How clients that ask for transactions are refused, until transactions are served.

FindCoordinator and InitProducerId get TRANSACTIONAL_ID_AUTHORIZATION_FAILED: the one error upon which every client
gives up, and all but sarama at once (it asks fifty times more, for five seconds). librdkafka asks for a coordinator
again and again after any other, so that its `init_transactions` waits until it times out and nobody learns why.
"""

from __future__ import annotations

import logging
from typing import Final

from strandline.clock import Clock
from strandline.errors import TransactionalIdAuthorizationFailed
from strandline.server.context import RequestContext

logger = logging.getLogger(__name__)

# Clients are started again by their supervisors, each time with a refusal.
_SECONDS_BETWEEN_LINES: Final = 10.0


class RefusedTransactions:
    """Makes the refusals, with a line in the log for the first and then at most one in ten seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next_line = clock.monotonic()
        self._not_logged = 0

    def refusal(self, transactional_id: str, context: RequestContext) -> TransactionalIdAuthorizationFailed:
        """The error for this client."""
        now = self._clock.monotonic()
        if now < self._next_line:
            self._not_logged += 1
        else:
            logger.warning(
                "client %r at %s asked for a transaction with transactional.id %r and was refused: Strandline does not "
                "serve transactions yet (%d more refusals since the last such line)",
                context.client_id,
                context.client_host,
                transactional_id,
                self._not_logged,
            )
            self._next_line, self._not_logged = now + _SECONDS_BETWEEN_LINES, 0
        return TransactionalIdAuthorizationFailed(
            f"Strandline does not serve transactions yet, so transactional.id {transactional_id!r} cannot be used. "
            "Remove transactional.id from the producer's settings; idempotence works without it."
        )
