-- What runs of the pipeline may have written and not recorded: locks nothing that is in use, creates a table.

-- Claimants that have claimed WAL objects, until somebody has looked twice for split files that they did not record, after
-- the last of their claims was gone. `claims`: how often they have claimed. `claim_ms`: for how long, the last time.
-- `looked_at_ms`: when the first of the two looks ended; NULL again with the next claim.
CREATE TABLE inkless_split_run (
    claimant TEXT PRIMARY KEY,
    claims BIGINT NOT NULL,
    claim_ms BIGINT NOT NULL,
    first_claim_at_ms BIGINT NOT NULL,
    looked_at_ms BIGINT
);
