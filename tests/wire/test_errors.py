"""Our errors and Kafka's codes stay together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode

from strandline import admin_errors, errors, share_errors
from strandline.errors import GroupIdNotFound, StrandlineError
from strandline.wire.errors import KAFKA_CODES, ErrorCode, error_code_of, error_of, message_of
from strandline.wire.primitives import MAX_STRING_LENGTH


def subclasses(base: type[StrandlineError]) -> Iterator[type[StrandlineError]]:
    for cls in base.__subclasses__():
        if cls.__module__ in (errors.__name__, admin_errors.__name__, share_errors.__name__):
            yield cls
        yield from subclasses(cls)


@pytest.mark.parametrize("error", list(subclasses(StrandlineError)), ids=lambda e: e.__name__)
def test_every_error_has_a_code_that_agrees_on_retrying(error: type[StrandlineError]) -> None:
    assert KAFKA_CODES[error].retriable == error.retriable


def test_codes_have_the_names_and_numbers_another_library_knows() -> None:
    assert {code.value: code.name for code in KioErrorCode} == {code.value: code.name.lower() for code in ErrorCode}


def test_no_two_errors_share_a_code() -> None:
    assert len(set(KAFKA_CODES.values())) == len(KAFKA_CODES)


def test_an_unforeseen_exception_is_an_unknown_server_error() -> None:
    assert error_code_of(ZeroDivisionError()) is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("error", KAFKA_CODES, ids=lambda e: e.__name__)
def test_an_error_answered_by_another_broker_is_the_same_error_here(error: type[StrandlineError]) -> None:
    again = error_of(error_code_of(error("because")), "because")
    assert (type(again), str(again)) == (error, "because")


def test_codes_without_an_error_of_ours_are_named() -> None:
    assert str(error_of(ErrorCode.DELEGATION_TOKEN_EXPIRED)) == "DELEGATION_TOKEN_EXPIRED"
    assert str(error_of(31_000)) == "UNKNOWN_SERVER_ERROR"


def test_a_subclass_speaks_with_the_code_of_its_base() -> None:
    class Narrower(errors.InvalidConfig):
        pass

    assert error_code_of(Narrower("x")) is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("letter", ["x", "é", "\U0001f600", "\udc80"])
def test_a_message_fits_into_a_string_and_keeps_both_ends(letter: str) -> None:
    message = message_of(GroupIdNotFound(f"Group {letter * 40_000} not found."))
    assert len(message.encode("utf-8", "replace")) <= MAX_STRING_LENGTH
    assert message.startswith("Group ")
    assert message.endswith(" not found.")
    assert message_of(GroupIdNotFound("Group é not found.")) == "Group é not found."
