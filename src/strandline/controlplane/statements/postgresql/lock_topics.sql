-- The logs of some topics, locked in the order of their ids. Those that a deletion has begun with are among them.
SELECT log_id
FROM inkless_log
WHERE topic_id = ANY ($1::uuid[])
ORDER BY log_id
FOR UPDATE
