"""The operator's side: the `strandline` command, and HTTP with health, metrics and a status page.

Why it exists: operators need commands, metrics and pages, and the packages below must not know of them. What goes here:
`commands`, which speak the Kafka protocol or HTTP to a running broker or read the files of a stopped one; `http`, the
HTTP application; below both, `status` (the status of a broker as a value), `reporting` (which builds it) and `text`.
What does not: rules. If a command has to decide something, the rule for it belongs in a lower package.
"""
