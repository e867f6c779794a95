"""What `/metrics` answers: tables of metric families, each of which reads its numbers from a status value.

`families` says what a family is; `broker`, `load`, `traffic`, `partitions`, `diskless`, `tiered` and `fixed` are the
tables, `aliases` has further names, and `tables` lists them all; `exposition` fills them for a scrape; `reference`
writes them down in docs/metrics.md.
"""
