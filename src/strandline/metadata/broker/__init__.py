"""A broker as a member of its cluster: registration, heartbeats, and its requests to the active controller."""
