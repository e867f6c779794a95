"""Commands that print what is stored: local files, WAL objects, the metadata log, remote log metadata.

A module per command, and beside it the one that reads: `log` and `log_files`, `wal` and `wal_rows`, `remote` and
`remote_records`, and `metadata`.
"""
