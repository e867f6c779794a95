"""Makes changes of settings: most of them together, those that the control plane takes part in one by one.

A resource whose change the control plane refuses does not stop the others. Logs and stores are asked before the
controller's turn, so that no other change of metadata waits for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from strandline.errors import StrandlineError
from strandline.metadata.controller.switch_checks import SwitchChecks, check_contents
from strandline.metadata.image import Images, MetadataImage
from strandline.metadata.plans.configs import ConfigPlanner, ConfigWish
from strandline.metadata.requests import Plan

T = TypeVar("T")


class _ConfigWrite(Protocol):
    async def __call__(self, decide: Callable[[MetadataImage], Plan[T]], *, validate_only: bool = False) -> T:
        """`Controller.write`."""


class ConfigChanges:
    """Carries out what `ConfigPlanner` decides."""

    def __init__(self, planner: ConfigPlanner, images: Images, write: _ConfigWrite) -> None:
        self._planner, self._images, self._write = planner, images, write

    async def make(
        self, wishes: Sequence[ConfigWish], checks: SwitchChecks, *, validate_only: bool
    ) -> list[StrandlineError | None]:
        """One answer for each wish, in their order; None: done, or possible."""
        image, times = self._images.image, Counter(wish.resource for wish in wishes)
        alone = [
            index
            for index, wish in enumerate(wishes)
            if times[wish.resource] == 1 and self._planner.needs_control_plane(image, wish)
        ]
        common = [index for index in range(len(wishes)) if index not in alone]
        answers: list[StrandlineError | None] = [None] * len(wishes)
        if common:
            some = [wishes[index] for index in common]
            made = await self._write(lambda image: self._planner.plan(image, some), validate_only=validate_only)
            for index, answer in zip(common, made, strict=True):
                answers[index] = answer
        for index in alone:
            answers[index] = await self._make_one(wishes[index], checks, validate_only=validate_only)
        return answers

    async def _make_one(self, wish: ConfigWish, checks: SwitchChecks, *, validate_only: bool) -> StrandlineError | None:
        try:
            found = self._planner.topic_to_check(self._images.image, wish)
            checked = None if found is None else await check_contents(*found, checks)
            await self._write(
                lambda image: self._planner.plan_together(image, wish, checked), validate_only=validate_only
            )
        except StrandlineError as error:
            return error
        return None
