"""A decision about a share group: beside what all groups change, where it has state in the share coordinator."""

from __future__ import annotations

from strandline.coordinators.groups.modern.changes import GroupChanges
from strandline.coordinators.groups.share.group import ShareGroup
from strandline.coordinators.groups.share.schemas import ShareRecordType, ShareStatesValue


class ShareChanges(GroupChanges[ShareGroup]):
    def put_states(self, states: ShareStatesValue) -> None:
        self.put(ShareRecordType.STATES, "", states)
