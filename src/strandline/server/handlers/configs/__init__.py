"""Settings of topics and brokers, and log levels: described and changed."""
