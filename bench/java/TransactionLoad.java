import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.LongStream;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * One transactional producer with Kafka's client, which speaks transaction.version 2, and a read_committed consumer.
 *
 * java TransactionLoad brokers=HOST:PORT topic=NAME size=BYTES transaction_ms=N seconds=N warmup=N rate=N consumes=0|1
 *
 * A transaction takes records for so many milliseconds; with 0 it has one record. Records of a transaction are flushed
 * before it is committed, so that the time of a commit is that of the commit alone. With rate=0 records are sent as fast
 * as the producer takes them; otherwise on a schedule that does not wait for a slow broker, and the time of a record runs
 * from its place in the schedule. The last line that is printed is a JSON object. Any failure ends the program with 1.
 */
public final class TransactionLoad {
    private static final long MILLISECOND = 1_000_000L;
    private static final long SECOND = 1_000 * MILLISECOND;
    private static final int CHUNK = 1 << 16;

    private final Map<String, String> options;
    private final int size;
    private final long transaction;
    private final long interval;
    private final AtomicLong sent = new AtomicLong();
    private final Times commits = new Times();
    private final Times arrivals = new Times();
    private volatile long measuredFrom = Long.MAX_VALUE;
    private volatile Throwable failure;

    private TransactionLoad(Map<String, String> options) {
        this.options = options;
        size = Math.max(Integer.parseInt(options.get("size")), Long.BYTES);
        transaction = Long.parseLong(options.get("transaction_ms")) * MILLISECOND;
        var rate = Long.parseLong(options.getOrDefault("rate", "0"));
        interval = rate == 0 ? 0 : SECOND / rate;
    }

    public static void main(String[] arguments) {
        Load.main(arguments, options -> new TransactionLoad(options)::run);
    }

    private String run() throws Exception {
        var consumer = "1".equals(options.get("consumes")) ? new KafkaConsumer<byte[], byte[]>(consumerSettings()) : null;
        Thread reader = null;
        try (var producer = new KafkaProducer<byte[], byte[]>(producerSettings())) {
            producer.initTransactions();
            if (consumer != null) {
                var partitions = consumer.partitionsFor(options.get("topic")).stream()
                        .map(one -> new TopicPartition(one.topic(), one.partition()))
                        .toList();
                consumer.assign(partitions);
                consumer.seekToEnd(partitions);
                partitions.forEach(consumer::position);
                reader = new Thread(() -> read(consumer));
                reader.start();
            }
            write(producer, seconds("warmup"));
            commits.clear();
            var before = sent.get();
            measuredFrom = System.nanoTime();
            write(producer, seconds("seconds"));
            var elapsed = (System.nanoTime() - measuredFrom) / (double) SECOND;
            var records = sent.get() - before;
            if (reader != null) {
                finish(reader, records);
            }
            return String.format(
                    Locale.ROOT,
                    "{\"records\": %d, \"mb_s\": %.3f, \"transactions_s\": %.3f, \"commit\": %s, \"end_to_end\": %s}",
                    records, records * size / elapsed / 1e6, commits.count() / elapsed, commits, arrivals);
        }
    }

    private long seconds(String name) {
        return Long.parseLong(options.get(name)) * SECOND;
    }

    private void write(KafkaProducer<byte[], byte[]> producer, long nanoseconds) {
        var topic = options.get("topic");
        var end = System.nanoTime() + nanoseconds;
        var due = System.nanoTime();
        while (System.nanoTime() < end) {
            producer.beginTransaction();
            var started = System.nanoTime();
            do {
                due = interval == 0 ? System.nanoTime() : waitFor(due + interval);
                var value = new byte[size];
                ByteBuffer.wrap(value).putLong(due);
                producer.send(new ProducerRecord<>(topic, value));
                sent.incrementAndGet();
            } while (System.nanoTime() - started < transaction);
            producer.flush();
            var before = System.nanoTime();
            producer.commitTransaction();
            commits.add(System.nanoTime() - before);
        }
    }

    private static long waitFor(long due) {
        for (var left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
        return due;
    }

    private void read(KafkaConsumer<byte[], byte[]> consumer) {
        try (consumer) {
            while (!Thread.currentThread().isInterrupted()) {
                var records = consumer.poll(Duration.ofMillis(100));
                var now = System.nanoTime();
                for (var record : records) {
                    var due = ByteBuffer.wrap(record.value()).getLong();
                    if (due >= measuredFrom) {
                        arrivals.add(now - due);
                    }
                }
            }
        } catch (org.apache.kafka.common.errors.InterruptException over) {
            Thread.currentThread().interrupt();
        } catch (Throwable error) {
            failure = error;
        }
    }

    /** Waits until the consumer has every record of the measurement. */
    private void finish(Thread reader, long records) throws Exception {
        var deadline = System.nanoTime() + 30 * SECOND;
        while (arrivals.count() < records && failure == null && System.nanoTime() < deadline) {
            LockSupport.parkNanos(10 * MILLISECOND);
        }
        reader.interrupt();
        reader.join();
        if (failure != null) {
            throw new IllegalStateException("the consumer failed", failure);
        }
        if (arrivals.count() < records) {
            throw new IllegalStateException(arrivals.count() + " of " + records + " records were read");
        }
    }

    private Map<String, Object> producerSettings() {
        return Map.of(
                ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, options.get("brokers"),
                ProducerConfig.TRANSACTIONAL_ID_CONFIG, "load-" + options.get("topic"),
                ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class,
                ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
    }

    private Map<String, Object> consumerSettings() {
        return Map.of(
                ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, options.get("brokers"),
                ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed",
                ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class,
                ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
    }

    /** Durations in nanoseconds. One thread adds, others ask how many there are. */
    private static final class Times {
        private long[] values = new long[CHUNK];
        private volatile int count;

        void add(long value) {
            if (count == values.length) {
                values = Arrays.copyOf(values, 2 * count);
            }
            values[count] = value;
            count = count + 1;
        }

        int count() {
            return count;
        }

        void clear() {
            count = 0;
        }

        @Override
        public String toString() {
            var sorted = LongStream.of(values).limit(count).sorted().toArray();
            return count == 0 ? "null" : String.format(
                    Locale.ROOT, "{\"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f}",
                    at(sorted, 0.5), at(sorted, 0.99), at(sorted, 1.0));
        }

        private static double at(long[] sorted, double share) {
            return sorted[(int) Math.min(sorted.length - 1, share * sorted.length)] / (double) MILLISECOND;
        }
    }
}
