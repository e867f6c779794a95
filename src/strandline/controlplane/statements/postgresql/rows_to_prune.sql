-- The next $3 rows of log $1 that end below offset $2, locked: how many, their bytes, the end of the last, their files.
SELECT count(*), CAST(coalesce(sum(byte_size), 0) AS BIGINT), max(last_offset), json_agg(DISTINCT file_id)
FROM (
    SELECT byte_size, last_offset, file_id
    FROM inkless_batch
    WHERE log_id = $1 AND last_offset < $2
    ORDER BY last_offset
    LIMIT $3
    FOR UPDATE
) AS page
