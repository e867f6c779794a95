-- At most $2 segments whose bytes are to be deleted once more at time $1.
SELECT segment_id, topic_id, topic_name, partition, base_offset, last_offset
FROM inkless_tiering_given_up
WHERE due_at_ms <= $1
ORDER BY due_at_ms
LIMIT $2
