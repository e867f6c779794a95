"""What `/metrics` answers: tables of metric families, each of which reads its numbers from a status value.

`families` says what a family is; `broker`, `diskless` and `tiered` are the tables; `collector` fills them for a scrape;
`reference` writes them down in docs/metrics.md.
"""
