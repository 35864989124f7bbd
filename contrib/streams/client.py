"""Streams of a pod with the Python client. Run as kubectl.sh: `pip install kubernetes`, KUBECONFIG."""
import socket, threading, time
from kubernetes import client, config
from kubernetes.stream import portforward, stream

config.load_kube_config()
namespace = config.list_kube_config_contexts()[1]["context"]["namespace"]
api = client.CoreV1Api()

def run(command, **options):
    return stream(api.connect_get_namespaced_pod_exec, "web", namespace, container="c", command=command,
                  stdout=True, stderr=True, tty=False, **options)

assert run(["echo", "out"], stdin=False) == "out\n"
shell = run(["sh"], stdin=True, _preload_content=False)
shell.write_stdin("echo one; echo two >&2; exit 3\n")
shell.run_forever(timeout=10)
assert shell.read_stdout() == "one\n" and shell.read_stderr() == "two\n" and shell.returncode == 3, shell.returncode
copy = run(["sh", "-c", "head -c 3000000 | wc -c"], stdin=True, _preload_content=False)
copy.write_stdin("x" * 3_000_000)
copy.run_forever(timeout=20)
assert copy.read_stdout().strip() == "3000000"

def echo(listener):
    connection = listener.accept()[0]
    connection.sendall(connection.recv(100))
    connection.close()

listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=echo, args=(listener,), daemon=True).start()
port = listener.getsockname()[1]
forward = portforward(api.connect_get_namespaced_pod_portforward, "web", namespace, ports=str(port))
pipe = forward.socket(port)
pipe.setblocking(True)
pipe.sendall(b"hello")
assert pipe.recv(100) == b"hello"
assert forward.error(port) is None
print("ok")
