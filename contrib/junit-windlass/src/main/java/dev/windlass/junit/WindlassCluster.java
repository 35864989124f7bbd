package dev.windlass.junit;

import java.io.File;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * A Kubernetes control plane that runs as a process of its own: {@code windlass cluster}.
 *
 * <p>The control plane stops with {@link #close()}, and when this virtual machine ends, even by kill -9.
 */
public final class WindlassCluster implements AutoCloseable {
    /** The time until the control plane must be ready. An idle machine needs less than 0.1 seconds. */
    private static final Duration START_LIMIT = Duration.ofSeconds(60);
    /** The time from SIGTERM to SIGKILL. */
    private static final Duration STOP_LIMIT = Duration.ofSeconds(10);
    /** The pause between two looks for the kubeconfig. */
    private static final Duration POLL_INTERVAL = Duration.ofMillis(5);
    /** The number of lines of the log that an error quotes. */
    private static final int TAIL = 10;

    private final Process process;
    private final Path folder;

    private WindlassCluster(Process process, Path folder) {
        this.process = process;
        this.folder = folder;
    }

    /**
     * Starts a control plane, and returns when the control plane is ready.
     *
     * @param arguments more arguments for {@code windlass cluster}, such as {@code --bare}
     * @throws IOException if the program is not installed, cannot be run, ends, or is not ready within 60 seconds
     */
    public static WindlassCluster start(String... arguments) throws IOException {
        Path program = program(System.getenv());
        Path folder = Files.createTempDirectory("windlass-");
        WindlassCluster cluster = null;
        try {
            cluster = new WindlassCluster(spawn(program, folder, arguments), folder);
            cluster.await();
            return cluster;
        } catch (IOException error) {
            if (cluster == null) {
                delete(folder);
            } else {
                cluster.close();
            }
            throw error;
        }
    }

    /** Returns the kubeconfig of an administrator. A client reads the address and the credentials from this file. */
    public Path kubeconfig() {
        return folder.resolve("kubeconfig");
    }

    /** Stops the control plane, and deletes the kubeconfig. */
    @Override
    public void close() throws IOException {
        process.destroy();
        try {
            if (!process.waitFor(STOP_LIMIT.toMillis(), TimeUnit.MILLISECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException interrupt) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
        delete(folder);
    }

    /** Returns the file that the variable WINDLASS names, or else the program on the PATH. */
    static Path program(Map<String, String> environment) throws IOException {
        String named = environment.get("WINDLASS");
        if (named != null && !named.isEmpty()) {
            return Path.of(named);
        }
        for (String directory : environment.getOrDefault("PATH", "").split(File.pathSeparator)) {
            Path file = Path.of(directory, "windlass");
            if (!directory.isEmpty() && Files.isRegularFile(file) && Files.isExecutable(file)) {
                return file;
            }
        }
        throw new IOException("the program windlass is not on the PATH. Install it (cargo install --locked windlass-cli), "
                + "or name its file in the variable WINDLASS");
    }

    /** Starts the process. The kernel closes the pipe to its standard input when this virtual machine ends. */
    private static Process spawn(Path program, Path folder, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(program.toString(), "cluster", "--until-stdin-closes"));
        command.addAll(List.of("--kubeconfig", folder.resolve("kubeconfig").toString()));
        command.addAll(List.of(arguments));
        File log = folder.resolve("log").toFile();
        return new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log).start();
    }

    /** Waits for the kubeconfig, which is written when the control plane is ready. */
    private void await() throws IOException {
        long deadline = System.nanoTime() + START_LIMIT.toNanos();
        while (!Files.exists(kubeconfig())) {
            if (!process.isAlive()) {
                throw new IOException("windlass cluster ended with code " + process.exitValue() + ":\n" + tail());
            }
            if (System.nanoTime() > deadline) {
                throw new IOException("windlass cluster was not ready within " + START_LIMIT.toSeconds() + " s:\n" + tail());
            }
            try {
                Thread.sleep(POLL_INTERVAL.toMillis());
            } catch (InterruptedException interrupt) {
                Thread.currentThread().interrupt();
                throw new InterruptedIOException("interrupted while windlass cluster starts");
            }
        }
    }

    private String tail() throws IOException {
        String log = new String(Files.readAllBytes(folder.resolve("log")), StandardCharsets.UTF_8);
        List<String> lines = log.lines().toList();
        return String.join("\n", lines.subList(Math.max(0, lines.size() - TAIL), lines.size()));
    }

    private static void delete(Path folder) throws IOException {
        for (String name : List.of("kubeconfig", "log")) {
            Files.deleteIfExists(folder.resolve(name));
        }
        Files.deleteIfExists(folder);
    }
}
