-- The first $1 split files of each log that begin at an offset or later, and end at another or later; up to offset $2.
SELECT
    r.position, s.object_key, s.base_offset, s.last_offset, s.size_bytes, s.batch_count, s.max_timestamp,
    s.leader_epochs, s.created_at_ms, s.committed_at_ms
FROM unnest($3::int[], $4::uuid[], $5::int[], $6::bigint[], $7::bigint[])
    AS r(position, topic_id, partition, from_base, from_last)
CROSS JOIN LATERAL (
    SELECT *
    FROM inkless_split_batch
    WHERE topic_id = r.topic_id AND partition = r.partition AND base_offset >= r.from_base
        AND last_offset >= r.from_last AND base_offset <= $2
    ORDER BY base_offset
    LIMIT $1
) AS s
ORDER BY r.position, s.base_offset
