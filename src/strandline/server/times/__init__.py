"""How long requests take and which errors they get, by API. Measured by connections, shown by `admin`.

`recording` counts on the hot path; `distributions` makes quantiles of the counts when they are asked for; `errors`
finds the errors in answers; `waits` notes when a handler begins to wait.
"""

from strandline.server.times.distributions import Distribution, plus, upper_bound_ns
from strandline.server.times.errors import count_error_codes
from strandline.server.times.recording import PARTS, ApiTimes, ApiTimesStatus, RequestTimes
from strandline.server.times.waits import NotingWaits

__all__ = [
    "PARTS",
    "ApiTimes",
    "ApiTimesStatus",
    "Distribution",
    "NotingWaits",
    "RequestTimes",
    "count_error_codes",
    "plus",
    "upper_bound_ns",
]
