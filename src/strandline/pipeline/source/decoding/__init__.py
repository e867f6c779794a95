"""Record batches of Kafka to Arrow columns: with few Python objects for each batch, and none for each record."""

from strandline.pipeline.source.decoding.decoder import Decoder, Wanted

__all__ = ["Decoder", "Wanted"]
