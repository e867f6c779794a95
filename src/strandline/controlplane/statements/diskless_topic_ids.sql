-- Topics that have given offsets to batches, or may: a log without B0 is that of a switch, which may still be aborted.
SELECT DISTINCT topic_id
FROM inkless_log
WHERE diskless_log_start_offset >= 0 AND NOT is_deleted
