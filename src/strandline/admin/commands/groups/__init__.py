"""`strandline groups`: groups of all kinds, their members and offsets, and how offsets are changed.

`command` lists, describes and deletes; `reset` is `reset-offsets`, and `reset_plan` decides what it writes. `kinds`
asks the broker what a group is, by the API that its kind has; `offsets` reads, writes and deletes offsets; `scope`
reads the topics that a command is given.
"""
