-- The next $3 rows of log $1 that end below offset $2: how many, their bytes, the end of the last, their files.
SELECT count(*), coalesce(sum(byte_size), 0), max(last_offset), json_group_array(DISTINCT file_id)
FROM (
    SELECT byte_size, last_offset, file_id
    FROM inkless_batch
    WHERE log_id = $1 AND last_offset < $2
    ORDER BY last_offset
    LIMIT $3
) AS page
