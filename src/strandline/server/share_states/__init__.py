"""Share groups between brokers: coordinators of share partitions that are on others are reached by requests.

`share_delivery` delivers records, `coordinators.share_states` keeps what became of them; here is what connects the
two. Handlers of requests are in `server.handlers.share`.
"""
