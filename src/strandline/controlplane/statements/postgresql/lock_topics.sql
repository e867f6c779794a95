-- The logs of some topics, locked in the order of their ids. Includes logs whose deletion has begun.
SELECT log_id
FROM inkless_log
WHERE topic_id = ANY ($1::uuid[])
ORDER BY log_id
FOR UPDATE
