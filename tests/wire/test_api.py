"""What we offer, compared with what Kafka offers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.wire.api import API_VERSIONS, KNOWN_APIS, NEVER_FLEXIBLE, ApiKey, VersionRange, is_flexible
from strandline.wire.registry import codec
from tests.wire.frames import offered_by_kafka

# Kafka offers these only with a plugin that takes metrics of clients, which the recorded one did not have.
WITH_A_PLUGIN = {key: {"min": 0, "max": 0} for key in (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)}


@pytest.mark.parametrize("api_key", API_VERSIONS, ids=lambda key: key.name)
def test_an_offered_api_has_exactly_kafkas_versions(api_key: ApiKey) -> None:
    row = offered_by_kafka().get(api_key, WITH_A_PLUGIN.get(api_key))
    assert row is not None
    assert (API_VERSIONS[api_key].min, API_VERSIONS[api_key].max) == (row["min"], row["max"])


def test_streams_groups_are_not_offered_yet() -> None:
    later = {ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE}
    assert not later & API_VERSIONS.keys()
    assert later <= KNOWN_APIS.keys()


@pytest.mark.parametrize("api_key", KNOWN_APIS, ids=lambda key: key.name)
def test_every_known_api_has_a_codec(api_key: ApiKey) -> None:
    assert all(map(callable, codec(api_key)))


def test_every_api_kafka_offers_to_clients_is_known() -> None:
    quorum_only = {80, 81, 82}  # AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter
    assert offered_by_kafka().keys() - set(KNOWN_APIS) <= quorum_only


def test_a_range_says_what_it_contains() -> None:
    versions = VersionRange(2, 4, NEVER_FLEXIBLE)
    assert [version in versions for version in (1, 2, 4, 5)] == [False, True, True, False]
    assert not is_flexible(ApiKey.SASL_HANDSHAKE, 1)


def test_message_modules_are_imported_at_first_use_only() -> None:
    program = "import sys, strandline.wire.registry; print([m for m in sys.modules if '.wire.messages.' in m])"
    output = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert output.strip() == "['strandline.wire.messages.index']"


def test_the_documentation_lists_exactly_what_is_offered() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "protocol.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (\w+) \| (\d+)(?:-(\d+))? \|", page, re.MULTILINE)
    documented = {int(key): (name.lower(), int(low), int(high or low)) for key, name, low, high in rows}
    assert documented == {
        int(key): (key.name.replace("_", "").lower(), versions.min, versions.max)
        for key, versions in API_VERSIONS.items()
    }
