"""The brokers' side of the tiering pipeline, which turns aged diskless batches into tiered segments.

`service` answers the tiering API; `uploads` is what the leader of a partition does for a segment; `keeper` finishes
what a crash or a leader change has left, and expires converted segments; `ranges`, `rules` and `expiry` decide,
without I/O; `translating` stands between the values of the API and those of the control plane. Not here: the pipeline
itself (`strandline.pipeline`), and reading what it made (`hybrid.diskless`).
"""
