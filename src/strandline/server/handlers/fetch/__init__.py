"""Fetch: one request from its first look at its partitions to its answer. Which tier has an offset is asked of
`hybrid`.

`handler` takes requests, and `poll` serves one of them; `answers`, `sharing`, `watching` and `counting` are named after
what they do. What a session remembers between two requests is in `server.fetch_sessions`.
"""
