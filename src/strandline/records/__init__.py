"""Record batches of Kafka's format 2: the bytes every other layer carries.

Here: headers, checksums, stamping offsets, reading and building records, codecs, control records, the rules for
produced batches and for the sequences of their producers, fields of the records in Kafka's internal topics. Not here:
files, and offsets of a log.
"""

from strandline.records.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    BatchHeader,
    Buffer,
    TimestampType,
    crc_matches,
    increment_sequence,
    iter_headers,
    read_header,
    stamp,
    stamp_log_append_time,
)
from strandline.records.builder import build_batch
from strandline.records.codecs import Codec, compress, decompress
from strandline.records.control import (
    ControlType,
    EndTransactionMarker,
    build_marker,
    control_key,
    control_type_of,
    marker_of,
    read_marker,
)
from strandline.records.producer_entry import (
    NOT_VERIFIED,
    BatchSpan,
    ProducerEntry,
    SequencedBatch,
    TransactionVerification,
)
from strandline.records.record import Header, Record, read_records
from strandline.records.shares import fair_shares
from strandline.records.validation import (
    BatchLimits,
    Produced,
    check_codec_of_version,
    validate_internal,
    validate_produced,
)

__all__ = [
    "HEADER_SIZE",
    "LOG_OVERHEAD",
    "NOT_VERIFIED",
    "BatchHeader",
    "BatchLimits",
    "BatchSpan",
    "Buffer",
    "Codec",
    "ControlType",
    "EndTransactionMarker",
    "Header",
    "Produced",
    "ProducerEntry",
    "Record",
    "SequencedBatch",
    "TimestampType",
    "TransactionVerification",
    "build_batch",
    "build_marker",
    "check_codec_of_version",
    "compress",
    "control_key",
    "control_type_of",
    "crc_matches",
    "decompress",
    "fair_shares",
    "increment_sequence",
    "iter_headers",
    "marker_of",
    "read_header",
    "read_marker",
    "read_records",
    "stamp",
    "stamp_log_append_time",
    "validate_internal",
    "validate_produced",
]
