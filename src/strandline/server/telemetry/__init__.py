"""Metrics that clients push to the broker (KIP-714): who pushes what and how often, and what they have pushed.

- `otlp`: reads the metrics out of the messages of OpenTelemetry that clients send;
- `subscriptions`: which metrics a client is asked for, from the settings in the metadata;
- `figures`: the newest metrics of a bounded number of clients, for `/metrics`;
- `clients`: the rules of the two requests, and what is remembered of each client.
"""

from strandline.server.telemetry.clients import ClientTelemetry, TelemetryStatus
from strandline.server.telemetry.figures import PushedSample

__all__ = ["ClientTelemetry", "PushedSample", "TelemetryStatus"]
