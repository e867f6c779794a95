"""Three Strandline brokers on one PostgreSQL beside three nodes of Apache Kafka: `python -m bench.cluster --help`.

What needs more than one broker: traffic with three replicas, pauses of writes when a broker dies, is suspended or is
restarted, how soon every broker shows a change of metadata, and what a cluster at rest costs. The modules that run
brokers are imported where they are used: `bench.figures` takes its lines from `figures.py`.
"""
