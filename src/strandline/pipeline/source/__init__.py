"""A Spark data source over topics: `spark.read.format("strandline")`, batch and streaming.

Records come straight from the stores (WAL objects and remote segments); only what a broker alone has on its disks is
fetched from the broker. Here: options, planning, reading, decoding to Arrow. Not here: where the records are, which the
leader of a partition says (`hybrid.conversion.read_plans`).
"""
