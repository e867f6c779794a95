import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * One member of a share group that acknowledges each record explicitly and prints what happens, one event on a line.
 *
 * java ShareMember BOOTSTRAP GROUP TOPIC accept|hold|obey [NAME=VALUE of the consumer's settings ...]
 *
 *   got PARTITION OFFSET DELIVERY VALUE    a record was delivered
 *   says PARTITION OFFSET TYPE             the broker is about to be told what became of it
 *   stored PARTITION OFFSET TYPE           the broker has confirmed that
 *   refused PARTITION OFFSET TYPE ERROR    the broker has refused it
 *
 * `accept` accepts every record. `hold` answers only when there is a line on standard input, and then accepts what it
 * has got. `obey` does what the value of a record says: "accept", "reject", "release-N" until the record has been
 * delivered N times, "renew" once and then accept. SIGTERM ends it as Ctrl-C would.
 */
public final class ShareMember {
    private final KafkaShareConsumer<String, String> consumer;
    private final String behaviour;
    private final Map<String, Integer> renewed = new HashMap<>();
    private volatile boolean isOver;

    private ShareMember(String[] arguments) {
        var settings = new Properties();
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(ConsumerConfig.GROUP_ID_CONFIG, arguments[1]);
        settings.put(ConsumerConfig.SHARE_ACKNOWLEDGEMENT_MODE_CONFIG, "explicit");
        for (var place = 4; place < arguments.length; place++) {
            var parts = arguments[place].split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        consumer = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(arguments[2]));
        behaviour = arguments[3];
    }

    public static void main(String[] arguments) throws Exception {
        var member = new ShareMember(arguments);
        var main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> member.end(main)));
        member.run();
    }

    private void end(Thread main) {
        isOver = true;
        consumer.wakeup();
        try {
            main.join(20_000);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private void run() throws Exception {
        try (consumer) {
            while (!isOver) {
                var records = new ArrayList<ConsumerRecord<String, String>>();
                consumer.poll(Duration.ofMillis(500)).forEach(records::add);
                records.forEach(record -> print("got", record, record.deliveryCount().get() + "\t" + record.value()));
                if (!records.isEmpty() && "hold".equals(behaviour)) {
                    while (System.in.read() != '\n') {
                        Thread.onSpinWait();
                    }
                }
                if (!records.isEmpty()) {
                    answer(records);
                }
            }
        } catch (WakeupException over) {
            if (!isOver) {
                throw over;
            }
        }
    }

    private void answer(List<ConsumerRecord<String, String>> records) {
        var types = new HashMap<ConsumerRecord<String, String>, AcknowledgeType>();
        for (var record : records) {
            types.put(record, typeOf(record));
            print("says", record, types.get(record).name());
            try {
                consumer.acknowledge(record, types.get(record));
            } catch (IllegalStateException late) {
                print("refused", record, types.get(record) + "\t" + late.getClass().getSimpleName());
                types.remove(record);
            }
        }
        var failures = new HashMap<TopicPartition, String>();
        consumer.commitSync().forEach((partition, failure) ->
                failure.ifPresent(error -> failures.put(partition.topicPartition(), error.getClass().getSimpleName())));
        for (var record : records) {
            var failure = failures.get(new TopicPartition(record.topic(), record.partition()));
            if (types.containsKey(record)) {
                var type = types.get(record).name();
                print(failure == null ? "stored" : "refused", record, failure == null ? type : type + "\t" + failure);
            }
        }
    }

    private AcknowledgeType typeOf(ConsumerRecord<String, String> record) {
        var value = record.value();
        if (!"obey".equals(behaviour)) {
            return AcknowledgeType.ACCEPT;
        }
        if (value.startsWith("reject")) {
            return AcknowledgeType.REJECT;
        }
        if (value.startsWith("renew") && renewed.merge(record.partition() + "-" + record.offset(), 1, Integer::sum) == 1) {
            return AcknowledgeType.RENEW;
        }
        if (value.startsWith("release-") && record.deliveryCount().get() < Integer.parseInt(value.substring(8))) {
            return AcknowledgeType.RELEASE;
        }
        return AcknowledgeType.ACCEPT;
    }

    private static void print(String event, ConsumerRecord<String, String> record, String more) {
        System.out.println(event + "\t" + record.partition() + "\t" + record.offset() + "\t" + more);
    }
}
