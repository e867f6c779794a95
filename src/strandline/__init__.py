"""Strandline: a Kafka-compatible log in which a topic can live on disk, in remote storage and in WAL objects."""

from strandline.compiled.finder import install

install()
