UPDATE inkless_split_run
SET looked_at_ms = $2
WHERE claimant = $1
