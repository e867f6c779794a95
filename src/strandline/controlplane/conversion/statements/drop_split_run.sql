DELETE FROM inkless_split_run
WHERE claimant = $1
