-- The bytes of upload $1, which is ABORTING, are deleted once more at $2.
INSERT INTO inkless_tiering_given_up (
    segment_id, topic_id, topic_name, partition, base_offset, last_offset, due_at_ms
)
SELECT s.segment_id, s.topic_id, l.topic_name, s.partition, s.base_offset, s.last_offset, $2
FROM inkless_tiering_segment s
JOIN inkless_log l ON l.topic_id = s.topic_id AND l.partition = s.partition
WHERE s.segment_id = $1 AND s.state = 'ABORTING'
ON CONFLICT (segment_id) DO NOTHING
