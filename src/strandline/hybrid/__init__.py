"""The only place that knows that a partition may live in several tiers.

Here: which tier takes an append or answers a read, list offsets and delete records across tiers, making and removing
the control plane's logs as topics come and go. Not here: how a tier stores its bytes.
"""
