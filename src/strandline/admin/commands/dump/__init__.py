"""Commands that print what is stored: local files, WAL objects, the metadata log, remote log metadata.

Each command has a module, and most have another one that reads for it: `log` and `log_files`, `wal` and `wal_rows`,
`remote` and `remote_records`; `metadata` does both.
"""
