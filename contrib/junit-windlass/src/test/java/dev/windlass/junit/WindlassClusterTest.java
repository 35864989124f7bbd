package dev.windlass.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fabric8.kubernetes.client.Config;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

class WindlassClusterTest {
    @Test
    void twoClustersRunBesideEachOtherUntilTheyAreClosed() throws IOException {
        WindlassCluster first = WindlassCluster.start();
        InetSocketAddress address = address(first.kubeconfig());
        try (WindlassCluster second = WindlassCluster.start("--bare")) {
            assertNotEquals(address, address(second.kubeconfig()));
            assertTrue(accepts(address) && accepts(address(second.kubeconfig())));
        } finally {
            first.close();
        }
        assertFalse(accepts(address));
        assertFalse(Files.exists(first.kubeconfig().getParent()));
    }

    @Test
    void anErrorQuotesTheProgram() {
        IOException error = assertThrows(IOException.class, () -> WindlassCluster.start("--bogus"));
        assertTrue(error.getMessage().contains("code 2") && error.getMessage().contains("--bogus"), error.getMessage());
    }

    @Test
    void theVariableComesBeforeThePath(@TempDir Path folder) throws IOException {
        Path program = Files.createFile(folder.resolve("windlass"));
        assertTrue(program.toFile().setExecutable(true));
        String path = "/absent::" + folder;
        assertEquals(program, WindlassCluster.program(Map.of("PATH", path)));
        assertEquals(Path.of("/a/windlass"), WindlassCluster.program(Map.of("PATH", path, "WINDLASS", "/a/windlass")));
        IOException error = assertThrows(IOException.class, () -> WindlassCluster.program(Map.of("PATH", "/absent")));
        assertTrue(error.getMessage().contains("not on the PATH") && error.getMessage().contains("WINDLASS"));
    }

    @Test
    @Timeout(60)
    void aClusterEndsWhenTheVirtualMachineIsKilled() throws Exception {
        Path java = Path.of(System.getProperty("java.home"), "bin", "java");
        Process holder = new ProcessBuilder(
                        java.toString(), "-cp", System.getProperty("java.class.path"), Holder.class.getName())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        InetSocketAddress address;
        try (BufferedReader output = holder.inputReader()) {
            address = address(Path.of(output.readLine()));
            assertTrue(accepts(address));
        } finally {
            holder.destroyForcibly().waitFor();
        }
        while (accepts(address)) {
            Thread.sleep(20);
        }
    }

    /** A program that starts a cluster, and is killed. */
    static class Holder {
        public static void main(String[] arguments) throws Exception {
            System.out.println(WindlassCluster.start().kubeconfig());
            Thread.sleep(600_000);
        }
    }

    private static InetSocketAddress address(Path kubeconfig) {
        URI server = URI.create(Config.fromKubeconfig(kubeconfig.toFile()).getMasterUrl());
        return new InetSocketAddress(server.getHost(), server.getPort());
    }

    private static boolean accepts(InetSocketAddress address) {
        try (Socket socket = new Socket()) {
            socket.connect(address);
            return true;
        } catch (IOException refused) {
            return false;
        }
    }
}
