"""Coordinators: state machines that keep their state in an internal topic.

Here live consumer groups (`groups`) and, later, transactions. What they decide is pure and synchronous; what they
write goes to a partition of an internal topic and counts only when that partition has committed it. Nothing here
knows the wire protocol: `server.handlers` translates.
"""
