-- Split files that were recorded need not be remembered: their rows are not DISKLESS any more, so that a late attempt to
-- record them is refused.
DELETE FROM inkless_file
WHERE file_id = ANY ($1::bigint[]) AND state = 'deleting' AND format = -1
