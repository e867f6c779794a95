"""The only place that knows that a partition may live in several tiers.

- `layout`: which tier serves an offset; `kinds`: what a partition is. Both are decided without I/O.
- `partition`: a partition as request handlers see it, a layout over the `parts` of its log.
- `partitions`: finds partitions for request handlers, and runs reads that memory cannot answer.
- `remote`, `diskless`: each tier as its topics use it, open or not, and what makes it follow the metadata.
- `tiers`: how they are opened; `serving`: what works for them while a broker runs; `learning`, `following`,
  `log_starts`, `used_stores`: how both meet the control plane, the metadata, other brokers and operators.
- `switching`: how a live topic becomes diskless. `conversion`: how aged diskless records become remote segments.

Not here: how a tier stores its bytes (`log`, `remote`, `diskless`).
"""
