-- The $2 oldest of the files whose objects were gone before time $1.
-- SQLite takes the partial index only if it is told that these files are not uploaded ones.
DELETE FROM inkless_file
WHERE file_id IN (
    SELECT file_id
    FROM inkless_file
    WHERE state = 'deleted' AND state <> 'uploaded' AND marked_for_deletion_at_ms < $1
    ORDER BY marked_for_deletion_at_ms, file_id
    LIMIT $2
)
