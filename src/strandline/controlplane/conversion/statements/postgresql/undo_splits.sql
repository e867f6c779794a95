DELETE FROM inkless_split_batch
WHERE file_id IN (SELECT file_id FROM inkless_file WHERE object_key = ANY ($1::text[]))
RETURNING object_key, file_id, topic_id, partition, base_offset, last_offset
