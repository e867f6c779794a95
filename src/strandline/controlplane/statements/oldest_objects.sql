SELECT object_key FROM inkless_file
WHERE state = 'uploaded' AND format = 1
ORDER BY file_id
LIMIT $1
