"""Kafka's protocol without I/O: messages, headers, versions, error codes.

Here: primitive types, the generated message classes, the registry that finds them, the table from our errors to
Kafka's codes, and a small blocking client. Not here: sockets of the server, and what requests mean.
"""
