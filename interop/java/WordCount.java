import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Counts words exactly once: java WordCount BOOTSTRAP STATE_DIRECTORY INPUT OUTPUT.
 *
 * Nothing is cached, so that every word that is read becomes a record of the output and of the changelog: a count that
 * was done twice, or not at all, can be seen there. A fatal error ends the program with 1.
 */
public final class WordCount {
    private WordCount() {}

    public static void main(String[] arguments) throws InterruptedException {
        var strings = Serdes.String();
        var builder = new StreamsBuilder();
        builder.stream(arguments[2], Consumed.with(strings, strings))
                .flatMapValues(line -> Arrays.asList(line.split(" ")))
                .groupBy((key, word) -> word, Grouped.with(strings, strings))
                .count(Materialized.as("counts"))
                .toStream()
                .mapValues(String::valueOf)
                .to(arguments[3], Produced.with(strings, strings));
        var streams = new KafkaStreams(builder.build(), settings(arguments[0], Path.of(arguments[1])));
        var over = new CountDownLatch(1);
        streams.setStateListener((now, before) -> {
            System.out.println("state: " + now);
            if (now == KafkaStreams.State.ERROR) {
                over.countDown();
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(20))));
        streams.start();
        over.await();
        System.exit(1);
    }

    private static Properties settings(String bootstrap, Path stateDirectory) {
        var settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "word-count");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, stateDirectory.toString());
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        // A program that was killed is missed soon.
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), 6000);
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG), 1000);
        return settings;
    }
}
