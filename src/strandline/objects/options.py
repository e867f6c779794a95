"""How a store is reached and how patient we are with it. Values only; the settings of the broker fill them."""

from __future__ import annotations

from dataclasses import dataclass, field

from strandline.objects.marker import STORE_ID_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Options:
    """What the environment (AWS_*) does not say, or says differently. None leaves it to the environment."""

    endpoint_url: str | None = None
    """For stores that are not Amazon's: http://127.0.0.1:9000. Plain http is used only if it is written here."""
    region: str | None = None
    path_style: bool | None = None
    """True: http://endpoint/bucket/key, which is also what None means. False: http://bucket.endpoint/key."""
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often and for how long a call is tried. Times are in seconds."""

    attempts: int = 8
    backoff: float = 0.05
    """The longest wait after the first failure. It doubles with each further one; the real wait is random below it."""
    longest_backoff: float = 2.0
    attempt_deadline: float = 10.0
    deadline: float = 30.0
    """For all attempts and waits of one call together; for each page of a listing and of a delete."""
    list_deadline: float = 2.0
    """For a list of small ranges. What has not come by then is asked for again, each range by itself: one that hangs
    must not hold up those beside it."""
    slowest_copy: int = 1024 * 1024
    """Bytes per second. Copying a file may take longer than both deadlines by its size divided by this rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectOptions:
    """Everything about a store except its address."""

    s3: S3Options = field(default_factory=S3Options)
    patience: Patience = field(default_factory=Patience)
    hedge_after: float = 0.0
    """A read without an answer after this many seconds is sent a second time. 0 switches that off."""
    threads: int = 8
    """For a directory: how many files are written at once, and how many are read at once."""
    witness: str = STORE_ID_KEY
    """For a directory: the object that tells it from others; if it is missing, another directory is in its place."""
