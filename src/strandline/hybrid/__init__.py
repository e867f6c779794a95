"""The only place that knows that a partition may live in several tiers.

- `layout`: which tier serves an offset; `kinds`: what a partition is. Both are decided without I/O.
- `partition`: a partition as request handlers see it, a layout over the `parts` of its log.
- `partitions`: finds partitions for request handlers, and runs reads that memory cannot answer.
- `remote`, `diskless`: opening each tier, and making it follow the metadata. `tiers` joins them.
- `switching`: how a live topic becomes diskless. `conversion`: how aged diskless records become remote segments.

Not here: how a tier stores its bytes (`log`, `remote`, `diskless`).
"""
