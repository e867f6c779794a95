"""Transactions between brokers: coordinators and leaders of partitions that are on others are reached by requests.

`coordinators.transactions` has the rules; here is what carries them over the protocol. Handlers of requests are in
`server.handlers.transactions`.
"""
