-- Logs to commit to, which have a B0, locked in the order of their ids, whatever the order of the request.
SELECT
    r.position, l.log_id, l.log_start_offset, l.high_watermark, l.max_timestamp, l.last_epoch, l.first_unstable_offset,
    l.last_aborted_offset
FROM unnest($1::int[], $2::uuid[], $3::int[]) AS r(position, topic_id, partition)
JOIN inkless_log l ON l.topic_id = r.topic_id AND l.partition = r.partition
WHERE NOT l.is_deleted AND l.diskless_log_start_offset >= 0
ORDER BY l.log_id
FOR UPDATE OF l
