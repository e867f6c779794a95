import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.Function;

/** What the programs of this directory have in common: options of the form NAME=VALUE, and how they end. */
final class Load {
    private Load() {}

    /** Runs a program, prints its result, and ends with 0; any failure ends with 1. */
    static void main(String[] arguments, Function<Map<String, String>, Callable<String>> program) {
        var options = new HashMap<String, String>();
        for (var argument : arguments) {
            var parts = argument.split("=", 2);
            options.put(parts[0], parts[1]);
        }
        try {
            System.out.println(program.apply(options).call());
            System.exit(0);
        } catch (Exception error) {
            error.printStackTrace();
            System.exit(1);
        }
    }
}
