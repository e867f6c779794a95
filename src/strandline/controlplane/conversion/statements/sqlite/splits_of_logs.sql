-- The first $1 split files of each log that begin at an offset or later, and end at another or later; up to offset $2.
SELECT json_group_array(json_array(
    position, object_key, base_offset, last_offset, size_bytes, batch_count, max_timestamp, leader_epochs,
    created_at_ms, committed_at_ms
))
FROM (
    SELECT r.value->>0 AS position, s.*
    FROM json_each($3) AS r
    CROSS JOIN inkless_split_batch s ON s.id IN (
        SELECT id
        FROM inkless_split_batch
        WHERE topic_id = r.value->>1 AND partition = r.value->>2 AND base_offset >= r.value->>3
            AND last_offset >= r.value->>4 AND base_offset <= $2
        ORDER BY base_offset
        LIMIT $1
    )
    ORDER BY 1, s.base_offset
)
