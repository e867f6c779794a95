SELECT json_group_array(json_array(
    position, segment_id, base_offset, last_offset, size_bytes, claimed_by, leader_epoch, state, claim_expires_at_ms,
    custom_metadata
))
FROM (
    SELECT r.value->>0 AS position, s.*
    FROM json_each($1) AS r
    CROSS JOIN inkless_tiering_segment s ON s.topic_id = r.value->>1 AND s.partition = r.value->>2
    ORDER BY 1, s.base_offset, s.created_at_ms
)
