-- The logs of some topics. Includes logs whose deletion has begun.
SELECT json_group_array(json_array(log_id))
FROM inkless_log
WHERE topic_id IN (SELECT value->>0 FROM json_each($1))
