import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.TimeUnit;

/** Streams of a pod with fabric8's client. Run as kubectl.sh, with KUBECONFIG. */
public class Client {
  static void check(Object expected, Object found) {
    if (!expected.equals(found)) throw new AssertionError("expected " + expected + ", found " + found);
  }

  public static void main(String[] args) throws Exception {
    try (KubernetesClient client = new KubernetesClientBuilder().build()) {
      var pod = client.pods().withName("web").inContainer("c");
      var out = new ByteArrayOutputStream();
      var err = new ByteArrayOutputStream();
      try (var exec = pod.writingOutput(out).writingError(err).exec("sh", "-c", "echo one; echo two >&2; exit 3")) {
        check(3, exec.exitCode().get(10, TimeUnit.SECONDS));
      }
      check("one\n", out.toString());
      check("two\n", err.toString());
      var answer = new ByteArrayOutputStream();
      try (var exec = pod.redirectingInput().writingOutput(answer).exec("head", "-c", "5")) {
        exec.getInput().write("hello".getBytes());
        exec.getInput().flush();
        check(0, exec.exitCode().get(10, TimeUnit.SECONDS));
      }
      check("hello", answer.toString());
      try (var listener = new ServerSocket(0)) {
        var echo = new Thread(() -> {
          try (var socket = listener.accept()) {
            socket.getOutputStream().write(socket.getInputStream().readNBytes(5));
          } catch (Exception e) {
            throw new RuntimeException(e);
          }
        });
        echo.start();
        try (var forward = client.pods().withName("web").portForward(listener.getLocalPort());
            var socket = new Socket("127.0.0.1", forward.getLocalPort())) {
          socket.getOutputStream().write("hello".getBytes());
          InputStream in = socket.getInputStream();
          check("hello", new String(in.readNBytes(5)));
        }
      }
    }
    System.out.println("ok");
    System.exit(0);
  }
}
