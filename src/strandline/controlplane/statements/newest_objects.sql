SELECT object_key FROM inkless_file
WHERE state = 'uploaded'
ORDER BY file_id DESC
LIMIT $1
