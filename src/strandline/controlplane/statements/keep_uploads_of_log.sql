-- The bytes of all uploads of log $1, which is deleted, are deleted once more at $2.
INSERT INTO inkless_tiering_given_up (
    segment_id, topic_id, topic_name, partition, base_offset, last_offset, due_at_ms
)
SELECT s.segment_id, s.topic_id, l.topic_name, s.partition, s.base_offset, s.last_offset, $2
FROM inkless_log l
JOIN inkless_tiering_segment s ON s.topic_id = l.topic_id AND s.partition = l.partition
WHERE l.log_id = $1
ON CONFLICT (segment_id) DO NOTHING
