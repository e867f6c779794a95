"""The network server: listeners, connections, and one handler module per family of APIs.

What goes here: everything that speaks to a Kafka client. What does not: rules of logs, groups or metadata;
handlers translate between wire messages and the packages that own those rules.
"""
