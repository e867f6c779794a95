-- At most $2 segments whose bytes are to be deleted once more at time $1, behind the one that is due at $3 with id $4.
SELECT segment_id, topic_id, topic_name, partition, base_offset, last_offset, due_at_ms
FROM inkless_tiering_given_up
WHERE due_at_ms <= $1 AND due_at_ms >= $3 AND (due_at_ms > $3 OR segment_id > $4)
ORDER BY due_at_ms, segment_id
LIMIT $2
