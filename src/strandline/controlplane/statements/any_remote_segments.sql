-- Logs whose records are in remote storage in part, and segments that are under way.
SELECT 1 FROM inkless_log
WHERE NOT is_deleted AND migration_state <> 'DISKLESS_ONLY' AND tiered_high_offset >= log_start_offset
UNION ALL
SELECT 1 FROM inkless_tiering_segment
LIMIT 1
