"""Requests about transactions: of producers, of operators, and between brokers."""
