-- Rows of log $1 with $2 bytes were deleted below its read boundary: its start stays.
UPDATE inkless_log
SET byte_size = byte_size - $2
WHERE log_id = $1
