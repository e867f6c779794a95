-- The first row of log $1 from offset $2 on with timestamp $3 or later. The search by time ends at this row, unless a
-- record with a later timestamp than all that remain was deleted: then every row from $2 on is examined.
SELECT
    b.base_offset, b.last_offset, b.file_id, f.object_key, b.byte_offset, b.byte_size, b.timestamp_type,
    b.log_append_timestamp, b.max_timestamp, b.leader_epoch
FROM (
    SELECT *
    FROM inkless_batch
    WHERE log_id = $1 AND last_offset >= $2 AND max_timestamp >= $3
    ORDER BY last_offset
    LIMIT 1
) AS b
JOIN inkless_file f ON f.file_id = b.file_id
