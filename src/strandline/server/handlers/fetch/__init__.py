"""Fetch: one request from its first look at its partitions to its answer. Which tier has an offset is asked of
`hybrid`.

`handler` takes requests, `poll` serves one of them and moves through `states`; `places` reads its partitions, `held`
keeps what was read while other reads are under way, and `answers`, `sharing`, `watching` and `counting` are named after
what they do. What a session remembers between two requests is in `server.fetch_sessions`.
"""
