"""Appends to lists while brokers and the database are killed, paused and restarted, and a judge of what was read.

In the manner of Jepsen's list-append: values that are unique are appended to partitions, in transactions over several
of them that read, too; readers, observers and exactly-once copiers write down what they see; all of it becomes a
history, and `verify` says what in it must not be. The judge is pure: it sees the history alone. docs/chaos.md has the
kinds of violations. Not here: tests of single rules, which are in tests/crash and tests/clients.
"""
