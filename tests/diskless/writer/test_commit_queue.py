"""In which order the writer commits: a model of any order of uploads, failures and commits."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from strandline.diskless.writer.commit_queue import CommitQueue
from strandline.diskless.writer.rotation import Pipe

MAX_BATCHES = 10


class File:
    """An object of the model."""

    def __init__(self, number: int, batch_count: int) -> None:
        self.number = number
        self.batch_count = batch_count


class AnyOrder(RuleBasedStateMachine):
    """Uploads end in any order; commits follow the rotation."""

    def __init__(self) -> None:
        super().__init__()
        self.order: CommitQueue[File] = CommitQueue(max_batches=MAX_BATCHES)
        self.files: list[File] = []
        self.uploading: list[File] = []
        self.uploaded: set[File] = set()
        self.failed: set[File] = set()
        self.committing: list[File] = []
        self.done: list[File] = []

    @rule(batches=st.integers(1, 2 * MAX_BATCHES))
    def rotate(self, batches: int) -> None:
        file = File(len(self.files), batches)
        self.files.append(file)
        self.uploading.append(file)
        self.order.rotated(file)

    @precondition(lambda self: self.uploading)
    @rule(data=st.data(), is_well=st.booleans())
    def end_upload(self, data: st.DataObject, is_well: bool) -> None:
        file = self.uploading.pop(data.draw(st.integers(0, len(self.uploading) - 1)))
        if is_well:
            self.uploaded.add(file)
            self.order.uploaded(file)
        else:
            self.failed.add(file)
            self.order.failed(file)

    @rule()
    def begin_commit(self) -> None:
        group = self.order.begin_commit()
        if self.committing:
            assert not group
            return
        left = [file for file in self.files if file not in self.failed and file not in self.done]
        expected: list[File] = []
        for file in left:
            batches = sum(other.batch_count for other in expected) + file.batch_count
            if file not in self.uploaded or (expected and batches > MAX_BATCHES):
                break
            expected.append(file)
        assert list(group) == expected
        self.committing = expected

    @precondition(lambda self: self.committing)
    @rule()
    def end_commit(self) -> None:
        self.order.end_commit()
        self.done += self.committing
        self.committing = []

    @rule()
    def abandon_all(self) -> None:
        committing, waiting = self.order.abandon()
        assert list(committing) == self.committing
        assert [file.number for file in waiting] == sorted(
            file.number
            for file in (*self.uploading, *self.uploaded)
            if file not in self.done and file not in self.committing
        )
        self.done += [*committing, *waiting]
        self.uploading.clear()
        self.committing = []

    @invariant()
    def commits_are_in_the_order_of_rotation_and_nothing_is_counted_twice(self) -> None:
        left = [file for file in self.files if file not in self.failed and file not in self.done]
        assert list(self.order) == left
        assert len(list(self.order)) == len(left)
        uploading, committing = len(self.uploading), len(self.committing)
        assert self.order.pipe == Pipe(uploading, len(left) - uploading - committing, committing)


TestAnyOrder = AnyOrder.TestCase
