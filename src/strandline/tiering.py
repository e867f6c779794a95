"""The name under which notebooks know the Spark data source: `from strandline.tiering import register`."""

from strandline.pipeline import register

__all__ = ["register"]
