"""The driver of the pipeline: asks brokers what to convert, has Spark do it, and tells brokers what is done.

Here: rounds, claims, jobs, failures and what a run reports. Not here: the bytes (`splitting` and `merging` next to this
package), which `tasks` calls on executors. Only plan rows and small results pass through Spark's JVM.
"""
