"""The operator's side: the `strandline` command, and HTTP with health, metrics and a status page.

Why it exists: everything here is a convenience over what any Kafka tool can do. What goes here: commands that
speak the Kafka protocol to a running broker or read files of a stopped one, and the HTTP application. What does
not: rules. A command that decides something has found a rule that belongs into a lower package.

`start` is kept free of every import that the broker does not need; the other modules are imported when used.
"""
