"""Two brokers of two source trees, the same requests, and what is different in their answers.

Both brokers get the same topics in the same state, and then the same requests in the same order over raw sockets. The
answers are compared field by field, the bytes of records included. docs/differential.md says what is sent, what may
differ, and how a difference by timing is told from a real one. Not here: whether an answer is right, which is for the
tests; both brokers may be wrong in the same way.
"""
