-- Two transactions that each delete one of the last two rows of a file must not both see the other's row: a
-- transaction that marks files locks them first, in the order of their ids, and looks for rows afterwards.
SELECT count(*)
FROM (
    SELECT 1
    FROM inkless_file
    WHERE file_id = ANY ($1::bigint[])
    ORDER BY file_id
    FOR UPDATE
) AS locked
