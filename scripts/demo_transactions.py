"""A transaction that commits and one that aborts, over two topics and the offsets of a group, and who sees what."""

from __future__ import annotations

from confluent_kafka import Consumer, Producer, TopicPartition
from demo_clients import create_topic
from demo_stage import Broker, DemoFailed, run, say, title

ORDERS, PAYMENTS, GROUP = "orders", "payments", "clerk"
TRANSACTIONAL_ID = "till-7"
_SECONDS = 15


def show_transactions(broker: Broker) -> None:
    """A clerk turns orders into payments, exactly once."""
    title("Transactions: all of it counts, or nothing")
    create_topic(broker, ORDERS, 1)
    create_topic(broker, PAYMENTS, 2)
    _produce_orders(broker)
    till = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": TRANSACTIONAL_ID})
    till.init_transactions(_SECONDS)
    clerk = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": GROUP, "auto.offset.reset": "earliest"})
    clerk.assign([TopicPartition(ORDERS, 0, 0)])

    till.begin_transaction()
    till.produce(PAYMENTS, value="order-0", partition=0)
    till.produce(PAYMENTS, value="order-1", partition=1)
    till.send_offsets_to_transaction([TopicPartition(ORDERS, 0, 2)], clerk.consumer_group_metadata(), _SECONDS)
    till.commit_transaction(_SECONDS)
    say("committed: payments for order-0 and order-1, and that the clerk has read both orders")
    till.begin_transaction()
    till.produce(PAYMENTS, value="order-2 (wrong amount)", partition=0)
    till.flush(_SECONDS)
    till.abort_transaction(_SECONDS)
    say("aborted: a payment for order-2, after it was written")
    till.begin_transaction()
    till.produce(PAYMENTS, value="order-2", partition=0)
    till.flush(_SECONDS)
    say("open: another payment for order-2; it is written, and not decided")
    _check(broker, "read_uncommitted", ["order-0", "order-1", "order-2", "order-2 (wrong amount)"])
    _check(broker, "read_committed", ["order-0", "order-1"])
    till.commit_transaction(_SECONDS)
    say("committed")
    _check(broker, "read_committed", ["order-0", "order-1", "order-2"])
    (offset,) = clerk.committed([TopicPartition(ORDERS, 0)], _SECONDS)
    clerk.close()
    if offset.offset != 2:
        raise DemoFailed(f"the clerk's offset is {offset.offset} instead of 2")
    say(f"the clerk goes on at order {offset.offset}: its offset was part of the first transaction")
    run(broker, "transactions", "list")


def _produce_orders(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(3):
        producer.produce(ORDERS, value=f"order-{number}", partition=0)
    if producer.flush(_SECONDS):
        raise DemoFailed("not every order was acknowledged")


def _check(broker: Broker, isolation: str, expected: list[str]) -> None:
    """Read to the end with this isolation level, and show what came."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"{isolation}-reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.assign([TopicPartition(PAYMENTS, partition, 0) for partition in range(2)])
        ends, seen = 0, list[str]()
        while ends < 2:
            message = consumer.poll(_SECONDS)
            if message is None:
                raise DemoFailed(f"a {isolation} consumer waits for ever")
            if message.error() is not None:
                ends += 1
            else:
                seen.append(str(message.value() or b"", "utf-8"))
    finally:
        consumer.close()
    if sorted(seen) != expected:
        raise DemoFailed(f"a {isolation} consumer sees {sorted(seen)} instead of {expected}")
    say(f"a {isolation} consumer sees {', '.join(sorted(seen))}")
