"""The control plane's side of conversion: aged batches become split files, and split files become tiered segments.

Here: who may split which WAL file, which split files count, segments on their way into a log, what tasks have left
behind, and what operators want. Not here: the pipeline that writes the bytes, and what brokers tell it.
"""
