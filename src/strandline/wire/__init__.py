"""Kafka's protocol without I/O: messages, headers, versions, error codes.

Here: primitive types, the generated message classes, the registry that finds them, the table from our errors to
Kafka's codes; a small blocking client for tools, and the connection that brokers use among themselves. Not here:
the sockets of the server, and what requests mean.
"""
