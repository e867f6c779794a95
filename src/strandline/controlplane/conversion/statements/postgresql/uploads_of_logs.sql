SELECT
    r.position, s.segment_id, s.base_offset, s.last_offset, s.size_bytes, s.claimed_by, s.leader_epoch, s.state,
    s.claim_expires_at_ms, s.custom_metadata
FROM unnest($1::int[], $2::uuid[], $3::int[]) AS r(position, topic_id, partition)
JOIN inkless_tiering_segment s ON s.topic_id = r.topic_id AND s.partition = r.partition
ORDER BY r.position, s.base_offset, s.created_at_ms
