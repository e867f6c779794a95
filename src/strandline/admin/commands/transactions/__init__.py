"""`strandline transactions`: what coordinators and partitions know of transactions, and how to end those that hang.

`command` lists, describes and finds, `abort` ends. `asking` has the requests; `hanging` decides which open transactions
of partitions hang, because no coordinator will ever end them.
"""
