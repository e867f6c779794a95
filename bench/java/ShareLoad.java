import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Members of a new share group read a topic from its beginning, with Kafka's client and its default settings.
 *
 * java ShareLoad brokers=HOST:PORT topic=NAME group=NAME members=N records=N warmup=N acknowledgement=implicit|explicit
 *
 * Each member is a thread with a consumer of its own. The time runs from the moment in which `warmup` records were
 * received to that in which all `records` were, and each of them was acknowledged as accepted: with the next poll, or
 * one by one. The last line that is printed is a JSON object. Any failure ends the program with 1.
 */
public final class ShareLoad {
    private static final long SECOND = 1_000_000_000L;
    private static final long PATIENCE = 100 * SECOND;

    private final Map<String, String> options;
    private final long records;
    private final long warmup;
    private final boolean isExplicit;
    private final AtomicLong received = new AtomicLong();
    private final AtomicLong repeated = new AtomicLong();
    private final AtomicLong bytes = new AtomicLong();
    private final Map<Integer, BitSet> seen = new ConcurrentHashMap<>();
    private final long deadline = System.nanoTime() + PATIENCE;
    private volatile long startedAt;
    private volatile long endedAt;
    private volatile long bytesBefore;
    private volatile Throwable failure;

    private ShareLoad(Map<String, String> options) {
        this.options = options;
        records = Long.parseLong(options.get("records"));
        warmup = Long.parseLong(options.get("warmup"));
        isExplicit = "explicit".equals(options.get("acknowledgement"));
    }

    public static void main(String[] arguments) {
        Load.main(arguments, options -> new ShareLoad(options)::run);
    }

    private String run() throws Exception {
        startAtTheBeginning();
        var threads = new ArrayList<Thread>();
        for (var number = 0; number < Integer.parseInt(options.get("members")); number++) {
            threads.add(new Thread(this::read));
        }
        threads.forEach(Thread::start);
        for (var thread : threads) {
            thread.join();
        }
        if (failure != null) {
            throw new IllegalStateException("a member failed", failure);
        }
        if (endedAt == 0) {
            throw new IllegalStateException(received.get() + " of " + records + " records were received");
        }
        var elapsed = (endedAt - startedAt) / (double) SECOND;
        return String.format(
                Locale.ROOT,
                "{\"records_s\": %.1f, \"mb_s\": %.3f, \"repeated\": %d}",
                (records - warmup) / elapsed, (bytes.get() - bytesBefore) / elapsed / 1e6, repeated.get());
    }

    /** A share group begins at the end of a topic unless it is told otherwise. */
    private void startAtTheBeginning() throws Exception {
        var group = new ConfigResource(ConfigResource.Type.GROUP, options.get("group"));
        var earliest = new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
        try (var admin = Admin.create(Map.of(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, options.get("brokers")))) {
            admin.incrementalAlterConfigs(Map.of(group, List.of(earliest))).all().get();
        }
    }

    private void read() {
        try (var consumer = new KafkaShareConsumer<byte[], byte[]>(settings())) {
            consumer.subscribe(List.of(options.get("topic")));
            while (endedAt == 0 && failure == null && System.nanoTime() < deadline) {
                for (var record : consumer.poll(Duration.ofMillis(100))) {
                    if (isExplicit) {
                        consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                    }
                    count(record);
                }
            }
        } catch (Throwable error) {
            failure = error;
        }
    }

    private void count(ConsumerRecord<byte[], byte[]> record) {
        var offsets = seen.computeIfAbsent(record.partition(), partition -> new BitSet());
        synchronized (offsets) {
            if (offsets.get((int) record.offset())) {
                repeated.incrementAndGet();
                return;
            }
            offsets.set((int) record.offset());
        }
        var size = bytes.addAndGet(record.value().length);
        var number = received.incrementAndGet();
        if (number == warmup) {
            bytesBefore = size;
            startedAt = System.nanoTime();
        } else if (number == records) {
            endedAt = System.nanoTime();
        }
    }

    private Map<String, Object> settings() {
        return Map.of(
                ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, options.get("brokers"),
                ConsumerConfig.GROUP_ID_CONFIG, options.get("group"),
                ConsumerConfig.SHARE_ACKNOWLEDGEMENT_MODE_CONFIG, options.get("acknowledgement"),
                ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class,
                ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
    }
}
