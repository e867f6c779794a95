UPDATE controller_lease
SET next_offset = $1
WHERE id = 1
