INSERT INTO inkless_tiering_segment (
    segment_id, topic_id, partition, base_offset, last_offset, size_bytes, claimed_by, leader_epoch, state,
    claim_expires_at_ms, created_at_ms
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
