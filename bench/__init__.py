"""The benchmark: Strandline beside Apache Kafka and beside a bare loopback copy, in one run.

Start it with `make bench`, or `.venv/bin/python -m bench --help`. Not a test and not part of the package: it needs a C
compiler for the load generator, and Java with Maven for Apache Kafka. bench/README.md says what each figure means.
"""
