-- $1: now; $2: claimant.
INSERT INTO inkless_split_batch (
    topic_id, partition, base_offset, last_offset, object_key, file_id, size_bytes, batch_count, max_timestamp,
    leader_epochs, committed_at_ms, created_by, created_at_ms
)
SELECT
    topic_id, partition, base_offset, last_offset, object_key, file_id, size_bytes, batch_count, max_timestamp,
    leader_epochs, committed_at_ms, $2, $1::bigint
FROM unnest(
    $3::uuid[], $4::int[], $5::bigint[], $6::bigint[], $7::text[], $8::bigint[], $9::bigint[], $10::int[],
    $11::bigint[], $12::text[], $13::bigint[]
) AS s(
    topic_id, partition, base_offset, last_offset, object_key, file_id, size_bytes, batch_count, max_timestamp,
    leader_epochs, committed_at_ms
)
