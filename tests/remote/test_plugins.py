"""Storages that are chosen by class name, and what is said when that goes wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

import pytest

from strandline.clock import SystemChance, SystemClock, SystemIds
from strandline.errors import InvalidConfig
from strandline.objects.memory import MemoryStore
from strandline.remote.plugins import PluginContext, load_class, open_metadata_plugin, open_remote_storage
from strandline.remote.ports import RemoteStorageError
from strandline.remote.storage.objects import ObjectRemoteStorage
from strandline.remote.storage.settings import parse_object_settings
from strandline.remote.topic_based.manager import TopicBasedRemoteLogMetadataManager
from tests.remote.segments import make_segment

SETTING = "remote.log.storage.manager.class.name"


@pytest.fixture
def context(tmp_path: Path) -> PluginContext:
    return PluginContext(
        data_dir=tmp_path,
        log_dirs=(tmp_path / "logs",),
        node_id=1,
        cluster_id="some-cluster",
        clock=SystemClock(),
        ids=SystemIds(),
        chance=SystemChance(),
    )


class OwnStorage(ObjectRemoteStorage):
    """A plugin."""

    config: Mapping[str, str]

    @classmethod
    async def open(cls, config: Mapping[str, str], context: PluginContext) -> OwnStorage:
        if "fail" in config:
            raise LookupError("no such thing")
        storage = cls(MemoryStore(context.clock))
        storage.config = config
        return storage


class FailingMetadata(TopicBasedRemoteLogMetadataManager):
    """Another one."""

    @classmethod
    async def open(cls, config: Mapping[str, str], context: PluginContext) -> Self:
        raise LookupError("no such thing")


class HalfStorage:
    """Not a plugin: it lacks most of it."""

    async def fetch_index(self) -> None: ...

    @classmethod
    async def open(cls) -> None: ...


async def test_a_plugin_gets_what_follows_its_prefix(context: PluginContext, tmp_path: Path) -> None:
    name = f"{__name__}.OwnStorage"
    async with open_remote_storage({"own.setting": "7"}, context, class_name=name) as storage:
        assert isinstance(storage.inner, OwnStorage)
        assert storage.inner.config == {"own.setting": "7"}
        made = make_segment(tmp_path / "segment")
        await storage.copy_log_segment_data(made.metadata, made.data)
        assert bytes(await storage.fetch_log_segment(made.metadata, 0, 10)) == made.log[:10]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("NoModule", "names no Python class: write it as package.module.Class"),
        ("some module.Class", "names no Python class"),
        ("no_such_module.Class", "No module named 'no_such_module'.* must be installed where this broker runs"),
        ("org.apache.kafka.server.log.remote.storage.LocalTieredStorage", "Java classes cannot be used"),
        ("strandline.remote.plugins.NoSuchClass", "strandline.remote.plugins has no class NoSuchClass"),
        ("strandline.remote.plugins.load_class", "has no class load_class"),
        (f"{__name__}.HalfStorage", "the class has no copy_log_segment_data and no fetch_log_segment and no delete"),
    ],
)
async def test_a_class_that_cannot_be_used_is_named_with_its_setting(
    context: PluginContext, name: str, fault: str
) -> None:
    with pytest.raises(InvalidConfig, match=fault) as raised:
        async with open_remote_storage({}, context, class_name=name):
            raise AssertionError("it was opened")
    assert f"{SETTING}={name}" in str(raised.value)


async def test_a_module_that_fails_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "failing_plugin.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidConfig, match=r"some\.setting=failing_plugin\.Own .* fails with ZeroDivisionError"):
        await load_class("some.setting", "failing_plugin.Own", ())


async def test_a_plugin_that_does_not_open_is_told(context: PluginContext) -> None:
    with pytest.raises(RemoteStorageError, match=r"OwnStorage cannot be opened: LookupError\('no such thing'\)"):
        async with open_remote_storage({"fail": "yes"}, context, class_name=f"{__name__}.OwnStorage"):
            raise AssertionError("it was opened")


async def test_a_metadata_manager_that_lacks_a_method_or_cannot_be_opened_is_named(context: PluginContext) -> None:
    with pytest.raises(InvalidConfig, match=r"metadata\.manager\.class\.name=.*HalfStorage .* no list_remote_log"):
        await open_metadata_plugin(f"{__name__}.HalfStorage", {}, context)
    with pytest.raises(RemoteStorageError, match=r"FailingMetadata cannot be opened: LookupError\('no such thing'\)"):
        await open_metadata_plugin(f"{__name__}.FailingMetadata", {}, context)


async def test_the_default_is_a_directory_beside_the_logs(context: PluginContext, tmp_path: Path) -> None:
    async with open_remote_storage({}, context) as storage:
        assert storage.url == f"file://{tmp_path}/remote"
        made = make_segment(tmp_path / "segment", base_offset=7)
        await storage.copy_log_segment_data(made.metadata, made.data)
        path = storage.log_segment_path(made.metadata)
    expected = "orders-3-AAAAAAAAAAAAAAAAAKvN7w/00000000000000000007-AAAAAAAAAAAAAAAAAAAAAQ.log"
    assert path == tmp_path / "remote" / expected
    assert path.read_bytes() == made.log


async def test_only_segments_in_a_directory_are_files(context: PluginContext, tmp_path: Path) -> None:
    made = make_segment(tmp_path / "segment")
    async with open_remote_storage({"url": "memory://"}, context) as storage:
        assert storage.log_segment_path(made.metadata) is None


async def test_keys_may_have_a_prefix(context: PluginContext, tmp_path: Path) -> None:
    made = make_segment(tmp_path / "segment")
    async with open_remote_storage({"key.prefix": "tiered/"}, context) as storage:
        await storage.copy_log_segment_data(made.metadata, made.data)
    assert [path.name for path in (tmp_path / "remote/tiered").iterdir()] == ["orders-3-AAAAAAAAAAAAAAAAAKvN7w"]


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        ({"urll": "file:///x"}, r"rsm\.config\.urll is not a setting .*rsm\.config\.url"),
        ({"url": "ftp://x"}, r"rsm\.config\.url cannot be used\. ftp://…"),
        (
            {"storage.s3.api.call.timeout": "soon"},
            r"rsm\.config\.storage\.s3\.api\.call\.timeout=soon is not valid\. It m",
        ),
        ({"storage.s3.api.call.timeout": "0"}, "at least 1"),
        ({"inkless.storage.s3.path.style.access.enabled": "perhaps"}, "It must be true or false"),
    ],
)
async def test_a_wrong_setting_is_named(context: PluginContext, config: dict[str, str], fault: str) -> None:
    with pytest.raises(InvalidConfig, match=fault):
        async with open_remote_storage(config, context):
            raise AssertionError("it was opened")


def test_settings_of_a_bucket_have_the_names_of_diskless_topics(tmp_path: Path) -> None:
    common = {
        "storage.s3.bucket.name": "bucket",
        "storage.s3.region": "eu-central-1",
        "storage.s3.endpoint.url": "http://127.0.0.1:9000",
        "storage.s3.path.style.access.enabled": "false",
        "storage.s3.api.call.timeout": "5000",
        "storage.s3.api.call.attempt.timeout": "1500",
        "storage.aws.access.key.id": "id",
        "storage.aws.secret.access.key": "secret",
        "storage.aws.session.token": "token",
    }
    settings = parse_object_settings(common, tmp_path)
    assert settings == parse_object_settings({f"inkless.{name}": value for name, value in common.items()}, tmp_path)
    assert settings.url == "s3://bucket"
    s3, patience = settings.options.s3, settings.options.patience
    assert (s3.region, s3.endpoint_url, s3.path_style) == ("eu-central-1", "http://127.0.0.1:9000", False)
    assert (s3.access_key_id, s3.secret_access_key, s3.session_token) == ("id", "secret", "token")
    assert (patience.deadline, patience.attempt_deadline) == (5.0, 1.5)
    assert "secret" not in repr(s3)
