"""Kafka's protocol: messages, headers, versions, error codes; and connections to a broker.

Without I/O: primitive types, the generated message classes, the registry that finds them, the hand-written codecs of
Produce and Fetch, the table from our errors to Kafka's codes. With I/O: `client`, a small blocking client for tools,
and `broker_connection` and `kept_connection`, the connections that brokers use among themselves. Not here: the sockets
of the server, and what requests mean.
"""
