"""The parts of a partition's log: what a replica of this broker has, what the control plane has ordered, and what is
left of an older one.

A part is a stretch of offsets with one history of leader epochs, and says by its layout which tier serves which of
them. The newest part of a partition takes its appends; older ones end at a boundary. A new way to keep records is a
part here. What a partition does with its parts, whatever they are, goes to `hybrid.partition` and `parts.searching`.
"""
