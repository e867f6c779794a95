"""The transactional store on PostgreSQL. Loaded only by brokers that use it: importing asyncpg makes a start slower."""
