"""Requests of share groups (KIP-932): ShareFetch and ShareAcknowledge of members, state requests of brokers."""
