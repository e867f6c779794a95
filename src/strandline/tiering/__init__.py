"""The tiering pipeline on Spark: aged diskless batches become ordinary tiered segments; and Spark reads topics.

Here: what reads and writes the bytes, the driver that asks brokers what to do and has Spark do it, and the data source.
Not here: who decides (`hybrid.tiering` on brokers). Spark, Arrow and Java are used in this package only, and loaded by
those who run them: importing the package loads none of them.
"""
