-- Which object stores hold what the cluster has written. Creates a table only: locks nothing that is in use.

-- One row for each purpose: diskless (WAL objects) or remote (closed segments of tiered topics). `store_id` is in the store
-- as well, and every broker compares them. `url` is where the store was when it was recorded, for people.
CREATE TABLE strandline_store (
    purpose TEXT PRIMARY KEY,
    store_id TEXT NOT NULL,
    url TEXT NOT NULL
);
