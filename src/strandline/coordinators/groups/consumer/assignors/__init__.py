"""Server-side assignors: pure functions from members and topics to a target assignment.

Why it exists: with the consumer protocol the broker decides who reads what. An assignor gets the subscriptions, the
number of partitions of each topic and the target assignment before, and returns the new target of every member. What
does not go here: when a target is computed (`heartbeat`), and how members get there (`reconciliation`).
"""

from strandline.coordinators.groups.consumer.assignors.range import assign_ranges
from strandline.coordinators.groups.consumer.assignors.spec import AssignmentSpec, Assignor, AssignorMember
from strandline.coordinators.groups.consumer.assignors.uniform import assign_uniformly

ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}
"""By the names that clients and `group.consumer.assignors` use."""

__all__ = ["ASSIGNORS", "AssignmentSpec", "Assignor", "AssignorMember", "assign_ranges", "assign_uniformly"]
