"""The operator's side: the `strandline` command, and HTTP with health, metrics and a status page.

Why it exists: everything here is a convenience over what any Kafka tool can do. What goes here: `commands`, which speak
the Kafka protocol to a running broker or read the files of a stopped one; `http`, the HTTP application; below both,
`status` (the status of a broker as a value), `reporting` (which builds it) and `text`. What does not: rules. A command
that decides something has found a rule that belongs in a lower package.
"""
