// Streams of a pod with the JavaScript client. Run as kubectl.sh: `npm i @kubernetes/client-node`, KUBECONFIG.
import { KubeConfig, Exec, PortForward } from "@kubernetes/client-node";
import { PassThrough } from "node:stream";
import net from "node:net";
import assert from "node:assert";

const config = new KubeConfig();
config.loadFromDefault();
const namespace = config.getContextObject(config.getCurrentContext()).namespace;

async function run(command, input) {
  let [out, err] = ["", ""];
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  stdout.on("data", (data) => (out += data));
  stderr.on("data", (data) => (err += data));
  const stdin = input === undefined ? null : new PassThrough();
  const status = await new Promise((resolve, reject) => {
    new Exec(config).exec(namespace, "web", "c", command, stdout, stderr, stdin, false, resolve).then(() => stdin?.end(input), reject);
  });
  await new Promise((resolve) => setTimeout(resolve, 100));
  return { out, err, status };
}

let done = await run(["sh", "-c", "echo one; echo two >&2; exit 3"]);
assert.deepEqual([done.out, done.err, done.status.details.causes[0].message], ["one\n", "two\n", "3"]);
done = await run(["head", "-c", "5"], "hello");
assert.deepEqual([done.out, done.status.status], ["hello", "Success"]);

const server = net.createServer((socket) => socket.pipe(socket)).listen(0, "127.0.0.1");
await new Promise((resolve) => server.on("listening", resolve));
const [input, output] = [new PassThrough(), new PassThrough()];
await new PortForward(config).portForward(namespace, "web", [server.address().port], output, null, input);
const reply = new Promise((resolve) => output.on("data", resolve));
input.write("hello");
assert.equal(String(await reply), "hello");
console.log("ok");
process.exit(0);
