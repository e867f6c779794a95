DELETE FROM inkless_tiering_segment
WHERE segment_id = $1 AND topic_id = $2 AND partition = $3 AND state = 'ABORTING'
