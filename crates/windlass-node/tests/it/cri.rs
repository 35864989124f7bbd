//! The runtime over the CRI, with the container runtime at `WINDLASS_TEST_CRI`. Skipped, with the reason, without the variable.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::time::timeout;
use windlass_image::build::{Compression, Files, Recipe, image};
use windlass_image::{Config, Platform, RegistryOptions, RegistryServer, Store};
use windlass_node::{
    Command, ContainerId, ContainerSpec, Cri, CriConfig, Exit, Limits, Mount, PullError, Resolver, Runtime,
    RuntimeError, SandboxId, SandboxSpec, StoreImages, TerminalSize, User,
};
use windlass_patience::stretched;

use crate::fixture::{finish, sandbox_spec, spec};
use crate::network::{datagram_server, with_perl};

/// The endpoint of a container runtime with the image [`BUSYBOX`].
const ENDPOINT: &str = "WINDLASS_TEST_CRI";
const BUSYBOX: &str = "localhost/busybox:1";

struct Fixture {
    runtime: Cri,
    folder: TempDir,
    store: Store,
    /// The ID of [`BUSYBOX`].
    busybox: String,
}

async fn fixture() -> Option<Fixture> {
    let Ok(endpoint) = std::env::var(ENDPOINT) else {
        println!("skipped: {ENDPOINT} names no container runtime; contrib/ship/containerd.sh starts one");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("store")).unwrap();
    let runtime = Cri::new(config(endpoint, &folder, &store)).await.unwrap();
    let busybox = runtime.image(BUSYBOX).await.unwrap().expect("the container runtime has no busybox").id;
    Some(Fixture { runtime, folder, store, busybox })
}

fn config(endpoint: String, folder: &TempDir, store: &Store) -> CriConfig {
    let images = StoreImages::new(store.clone(), RegistryOptions::default(), vec![]);
    CriConfig { endpoint, directory: folder.path().join("sandboxes"), store: store.clone(), images }
}

impl Fixture {
    /// Creates a sandbox. Pods have unique names, because all tests share a container runtime.
    async fn sandbox(&self, name: &str) -> SandboxId {
        let id = SandboxId(format!("{name}-{}", std::process::id()));
        self.runtime
            .create_sandbox(SandboxSpec { host_name: name.into(), ..sandbox_spec(&id) })
            .await
            .unwrap();
        id
    }

    fn script(&self, text: &str) -> ContainerSpec {
        ContainerSpec { image: self.busybox.clone(), ..spec(&self.log(), text) }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("logs/0.log")
    }

    async fn ended(&self, id: &ContainerId) -> Exit {
        let limit = stretched(Duration::from_secs(60));
        timeout(limit, self.runtime.wait(id)).await.expect("the container did not end").unwrap()
    }

    async fn run(&self, sandbox: &SandboxId, spec: ContainerSpec) -> (i32, String) {
        let id = self.runtime.start(sandbox, spec).await.unwrap();
        let exit = self.ended(&id).await;
        self.runtime.remove(&id).await.unwrap();
        let text = windlass_node::log::last_lines(&self.log(), 1000, 1 << 20).unwrap();
        windlass_node::log::remove(&self.log()).unwrap();
        (exit.code, text)
    }

    async fn exec(&self, id: &ContainerId, words: &[&str]) -> (i32, String) {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let command = Command { words, terminal: None, stdin: false };
        finish(self.runtime.exec(id, command).await.unwrap()).await
    }

    async fn logged(&self, text: &str) {
        let start = std::time::Instant::now();
        while !windlass_node::log::last_lines(&self.log(), 1000, 1 << 20).unwrap_or_default().contains(text) {
            assert!(start.elapsed() < stretched(Duration::from_secs(30)), "the log has no {text:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_has_its_environment_mounts_user_and_log() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("program").await;
    let volume = fixture.folder.path().join("volume");
    fs::create_dir(&volume).unwrap();
    fs::write(volume.join("file"), "of the volume\n").unwrap();
    let text = "id -u; id -g; id -G; hostname; echo $A $HOSTNAME; cat /in/pod/file; touch /x || touch /in/pod/x || echo read-only;
        grep program /etc/hosts; grep NoNewPrivs /proc/self/status; echo no >&2; exit 3";
    let program = ContainerSpec {
        environment: vec![("A".into(), "1".into())],
        mounts: vec![Mount { source: volume, target: "/in/pod".into(), read_only: true }],
        user: User { user: Some(7), group: Some(8), supplementary_groups: vec![9], ..User::default() },
        read_only_root: true,
        limits: Limits { memory: Some(64 << 20), cpu: Some(500), processes: None },
        ..fixture.script(text)
    };
    let (code, log) = fixture.run(&pod, program).await;
    assert_eq!(code, 3);
    assert!(log.contains("7\n8\n8 9\nprogram\n1 program\nof the volume\n"), "{log}");
    // Standard output and standard error are two streams: their lines have no order.
    for line in ["read-only", "10.244.0.7\tprogram", "NoNewPrivs:\t1", "no"] {
        assert!(log.lines().any(|logged| logged == line), "no line {line:?}: {log}");
    }
    let root = User { must_not_be_root: true, ..User::default() };
    let refused = fixture.runtime.start(&pod, ContainerSpec { user: root, ..fixture.script("true") }).await;
    assert!(matches!(refused, Err(RuntimeError::Config(_))), "{refused:?}");
    let missing = ContainerSpec { command: vec!["/missing".into()], attempt: 1, ..fixture.script("") };
    let refused = fixture.runtime.start(&pod, missing).await.unwrap_err().to_string();
    assert!(refused.contains("/missing"), "{refused}");
    fixture.runtime.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_reach_the_program_and_a_sandbox_takes_its_containers_along() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("signals").await;
    let text =
        "trap 'echo usr1' USR1; trap 'echo term; exit 5' TERM; echo ready; while true; do sleep 0.1; done";
    let first = fixture.runtime.start(&pod, fixture.script(text)).await.unwrap();
    assert_eq!(fixture.runtime.stop_signal(&first), 15);
    fixture.logged("ready").await;
    assert!(fixture.runtime.remove(&first).await.is_err());
    fixture.runtime.signal(&first, 10).await.unwrap();
    fixture.logged("usr1").await;
    fixture.runtime.signal(&first, 15).await.unwrap();
    assert_eq!(fixture.ended(&first).await.code, 5);
    // A container that has ended is no error.
    fixture.runtime.signal(&first, 15).await.unwrap();
    fixture.runtime.remove(&first).await.unwrap();
    let deaf = ContainerSpec { attempt: 1, ..fixture.script("trap '' TERM; while true; do sleep 0.1; done") };
    let second = fixture.runtime.start(&pod, deaf).await.unwrap();
    fixture.runtime.signal(&second, 9).await.unwrap();
    assert_eq!(fixture.ended(&second).await.code, 137);
    let third = ContainerSpec { attempt: 2, ..fixture.script("sleep 1000") };
    let third = fixture.runtime.start(&pod, third).await.unwrap();
    let (ended, removed) = tokio::join!(fixture.ended(&third), fixture.runtime.remove_sandbox(&pod));
    removed.unwrap();
    assert_eq!(ended.code, 137);
    assert!(matches!(
        fixture.runtime.start(&pod, fixture.script("true")).await,
        Err(RuntimeError::NotFound(_))
    ));
    fixture.runtime.remove_sandbox(&pod).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_inside_the_container() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("exec").await;
    let id = fixture.runtime.start(&pod, fixture.script("sleep 1000")).await.unwrap();
    let (code, text) = fixture.exec(&id, &["sh", "-c", "hostname; echo no >&2; exit 4"]).await;
    assert_eq!((code, text.as_str()), (4, "exec\nno\n"));
    let (code, text) = fixture.exec(&id, &["/missing"]).await;
    assert_eq!(code, 127, "{text}");
    assert!(text.contains("/missing"), "{text}");
    let (code, text) = fixture.exec(&id, &["/etc/passwd"]).await;
    assert_eq!(code, 126, "{text}");
    let (code, text) = fixture.exec(&id, &["seq", "200000"]).await;
    assert_eq!((code, text.lines().count()), (0, 200_000));
    let command = Command { words: vec!["cat".into()], terminal: None, stdin: true };
    let mut session = fixture.runtime.exec(&id, command).await.unwrap();
    let mut stdin = session.stdin.take().unwrap();
    tokio::spawn(async move { stdin.write_all(&vec![b'x'; 100_000]).await });
    let (code, text) = finish(session).await;
    assert_eq!((code, text.len()), (0, 100_000));
    fixture.runtime.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_has_a_size_and_clients_attach() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("terminal").await;
    let spec = ContainerSpec { stdin: true, terminal: true, ..fixture.script("read A; echo got $A; exit 6") };
    let id = fixture.runtime.start(&pod, spec).await.unwrap();
    let terminal = Some(TerminalSize { width: 81, height: 25 });
    let words =
        ["sh", "-c", "until [ \"$(stty size 2>/dev/null)\" = '25 81' ]; do sleep 0.1; done; echo sized"];
    let words = words.iter().map(ToString::to_string).collect();
    let session = fixture.runtime.exec(&id, Command { words, terminal, stdin: true }).await.unwrap();
    let (code, text) = finish(session).await;
    assert_eq!((code, text.as_str()), (0, "sized\r\n"));
    let mut session = fixture.runtime.attach(&id).await.unwrap();
    let mut stdin = session.stdin.take().unwrap();
    stdin.write_all(b"word\n").await.unwrap();
    let mut output = String::new();
    session.stdout.take().unwrap().read_to_string(&mut output).await.unwrap();
    assert!(output.contains("got word"), "{output}");
    assert_eq!(session.exit.await.unwrap().code, 6);
    fixture.runtime.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_is_reached_and_reaches_services() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("network").await;
    let server = "echo answer >/tmp/a; while true; do nc -l -p 80 </tmp/a; done";
    let id = fixture.runtime.start(&pod, fixture.script(server)).await.unwrap();
    let start = std::time::Instant::now();
    let mut stream = loop {
        match fixture.runtime.connect(&pod, 80).await {
            Ok(stream) => break stream,
            Err(error) => assert!(start.elapsed() < stretched(Duration::from_secs(20)), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "answer\n");
    let refused = fixture.runtime.connect(&pod, 81).await.unwrap_err().to_string();
    assert!(refused.starts_with("dial tcp 10.244.0.7:81"), "{refused}");
    let service: SocketAddr = "10.0.0.1:443".parse().unwrap();
    let listener = fixture.runtime.listen(service).await.unwrap();
    let accepted = tokio::spawn(async move {
        let (mut stream, from) = listener.accept().await.unwrap();
        stream.write_all(b"from the service\n").await.unwrap();
        from
    });
    let (code, text) = fixture.exec(&id, &["sh", "-c", "nc 10.0.0.1 443 </dev/null"]).await;
    assert_eq!((code, text.as_str()), (0, "from the service\n"));
    assert_eq!(accepted.await.unwrap().ip(), "10.244.0.7".parse::<std::net::IpAddr>().unwrap());
    fixture.runtime.shut_down().await;
}

/// Answers each query of a name with the answer that the name does not exist.
async fn know_no_name(socket: UdpSocket) {
    let mut query = [0; 512];
    while let Ok((length, from)) = socket.recv_from(&mut query).await {
        query[2..4].copy_from_slice(&[0x81, 0x83]);
        socket.send_to(&query[..length], from).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_asks_the_name_server_of_its_specification() {
    let Some(fixture) = fixture().await else { return };
    let pod = SandboxId(format!("names-{}", std::process::id()));
    let resolver = Resolver {
        servers: vec!["10.0.0.10".parse().unwrap()],
        searches: (0..32).map(|number| format!("{number}.example")).collect(),
        options: vec!["ndots:5".into()],
    };
    let searches = resolver.searches.join(" ");
    let spec = SandboxSpec { resolver: Some(resolver), ..sandbox_spec(&pod) };
    fixture.runtime.create_sandbox(spec).await.unwrap();
    tokio::spawn(know_no_name(fixture.runtime.bind("10.0.0.10:53".parse().unwrap()).await.unwrap()));
    let script = fixture.script("cat /etc/resolv.conf; nslookup web.a 2>&1 | grep -m 1 NXDOMAIN");
    let (code, text) = fixture.run(&pod, script).await;
    let expected = format!(
        "search {searches}\nnameserver 10.0.0.10\noptions ndots:5\n** server can't find web.a: NXDOMAIN\n"
    );
    assert_eq!((code, text), (0, expected));
    fixture.runtime.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_reach_each_other_at_their_addresses_until_they_are_removed() {
    let Some(fixture) = fixture().await else { return };
    let client = fixture.sandbox("client").await;
    let server = SandboxId(format!("server-{}", std::process::id()));
    let spec = SandboxSpec { address: "10.244.0.8".parse().unwrap(), ..sandbox_spec(&server) };
    fixture.runtime.create_sandbox(spec).await.unwrap();
    let text = "while true; do echo from the server | nc -l -p 80; done";
    fixture.runtime.start(&server, fixture.script(text)).await.unwrap();
    let log = fixture.folder.path().join("logs/client.log");
    let spec = ContainerSpec { log, ..fixture.script("sleep 1000") };
    let id = fixture.runtime.start(&client, spec).await.unwrap();
    let ask = "until nc 10.244.0.8 80 </dev/null 2>/dev/null; do sleep 0.1; done";
    let (code, text) = fixture.exec(&id, &["sh", "-c", ask]).await;
    assert_eq!((code, text.as_str()), (0, "from the server\n"));
    fixture.runtime.remove_sandbox(&server).await.unwrap();
    for address in ["10.244.0.8", "10.244.0.9", "10.0.0.3"] {
        let (code, text) = fixture.exec(&id, &["nc", "-w", "30", address, "80"]).await;
        let refused = format!("nc: can't connect to remote host ({address}): Connection refused\n");
        assert_eq!((code, text), (1, refused));
    }
    fixture.runtime.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn datagrams_reach_a_program() {
    let Some(fixture) = fixture().await else { return };
    let Some(script) = datagram_server(5000, "answer") else { return };
    let pod = fixture.sandbox("datagrams").await;
    let spec = ContainerSpec { mounts: with_perl(), ..fixture.script(&script) };
    fixture.runtime.start(&pod, spec).await.unwrap();
    let start = std::time::Instant::now();
    let mut answer = [0; 100];
    let length = loop {
        assert!(start.elapsed() < stretched(Duration::from_secs(30)), "no answer");
        let socket = fixture.runtime.connect_udp(&pod, 5000).await.unwrap();
        // A program that does not listen yet refuses the datagram.
        let asked = socket.send(b"?").await;
        let answered = timeout(Duration::from_millis(200), socket.recv(&mut answer)).await;
        if let (Ok(_), Ok(Ok(length))) = (asked, answered) {
            break length;
        }
    };
    assert_eq!(&answer[..length], b"answer");
    fixture.runtime.shut_down().await;
}

/// An image of a static busybox as the program `/bin/sh`.
fn store_image(store: &Store, name: &str) -> String {
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| fs::exists(path).unwrap());
    let mut files = Files::new();
    files.folder("bin", 0o755);
    files.copy("bin/sh", 0o755, busybox.expect("apt-get install busybox-static").as_ref());
    files.bytes("unique", 0o644, name);
    let config = Config {
        user: "65532:65532".into(),
        entrypoint: vec!["/bin/sh".into()],
        stop_signal: "SIGINT".into(),
        ..Config::default()
    };
    let recipe = Recipe {
        files,
        config,
        platform: Platform::host(),
        time: 0,
        created: "1970-01-01T00:00:00Z".into(),
        created_by: "test".into(),
        compression: Compression::Gzip,
    };
    let descriptor = image(store, &recipe).unwrap();
    store.tag(&name.parse().unwrap(), &descriptor).unwrap();
    descriptor.digest.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_of_the_local_store_runs_and_is_removed_at_the_end() {
    let Some(fixture) = fixture().await else { return };
    let digest = store_image(&fixture.store, "localhost/stored:1");
    let found = fixture.runtime.image("localhost/stored:1").await.unwrap().unwrap();
    assert_eq!(found.digested, format!("localhost/stored@{digest}"));
    let pod = fixture.sandbox("stored").await;
    let arguments = vec!["-c".into(), "id -u; sleep 1000".into()];
    let spec = ContainerSpec { image: found.id.clone(), command: vec![], arguments, ..fixture.script("") };
    let group = User { group: Some(7), must_not_be_root: true, ..User::default() };
    let id = fixture.runtime.start(&pod, ContainerSpec { user: group, ..spec }).await.unwrap();
    assert_eq!(fixture.runtime.stop_signal(&id), 2);
    fixture.logged("65532").await;
    fixture.runtime.shut_down().await;
    // Another runtime without the local store does not find the image.
    let other = TempDir::new().unwrap();
    let empty = Store::open(other.path().join("store")).unwrap();
    let runtime = Cri::new(config(std::env::var(ENDPOINT).unwrap(), &other, &empty)).await.unwrap();
    assert_eq!(runtime.image(&format!("localhost/stored@{digest}")).await.unwrap(), None);
    let closed = fixture.runtime.create_sandbox(sandbox_spec(&pod)).await;
    assert!(matches!(closed, Err(RuntimeError::Unsupported(_))), "{closed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_pulled_from_a_registry_on_this_machine() {
    let Some(fixture) = fixture().await else { return };
    let remote = Store::open(fixture.folder.path().join("remote")).unwrap();
    let registry = RegistryServer::bind(remote.clone(), ([127, 0, 0, 1], 0).into()).await.unwrap();
    let name = format!("{}/pulled:1", registry.address());
    let digest = store_image(&remote, &name);
    let missing = format!("{}/missing:1", registry.address());
    tokio::spawn(registry.run(std::future::pending()));
    assert!(fixture.runtime.may_pull(&name));
    let pulled = fixture.runtime.pull(&name, &[]).await.unwrap();
    assert_eq!(pulled.digested, format!("{}@{digest}", name.trim_end_matches(":1")));
    assert_eq!(fixture.runtime.image(&name).await.unwrap().unwrap(), pulled);
    let failed = fixture.runtime.pull(&missing, &[]).await.unwrap_err();
    assert!(matches!(failed, PullError::NotFound(_)), "{failed:?}");
    let failed = fixture.runtime.pull("127.0.0.1:1/a:1", &[]).await.unwrap_err();
    assert!(matches!(failed, PullError::Unavailable(_)), "{failed:?}");
    fixture.runtime.shut_down().await;
}

/// Returns whether containerd has a sandbox or a container of a pod, as containerd's own tool tells.
fn is_listed(pod: &str) -> bool {
    let endpoint = std::env::var(ENDPOINT).unwrap();
    let filter = format!("labels.\"windlass.dev/pod\"=={pod}");
    let output = std::process::Command::new("ctr")
        .args(["--address", endpoint.trim_start_matches("unix://"), "--namespace", "k8s.io"])
        .args(["containers", "list", "--quiet", &filter])
        .output()
        .expect("ctr is not on the PATH");
    assert!(output.status.success(), "{output:?}");
    !output.stdout.is_empty()
}

/// Set for the process that is killed.
const KILLED: &str = "WINDLASS_TEST_CRI_KILLED";

/// Creates a sandbox, says that the sandbox is there, and waits.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the process that the next test kills"]
async fn killed_process() {
    if std::env::var_os(KILLED).is_none() {
        return;
    }
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("killed").await;
    fixture.runtime.start(&pod, fixture.script("sleep 1000")).await.unwrap();
    println!("the container runs");
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_runtime_removes_what_a_killed_process_has_left_over() {
    let Some(fixture) = fixture().await else { return };
    let own = fixture.sandbox("own").await;
    let mut killed = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cri::killed_process", "--ignored", "--nocapture"])
        .env(KILLED, "1")
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = tokio::io::BufReader::new(killed.stdout.take().unwrap()).lines();
    let ready = async { while !lines.next_line().await.unwrap().unwrap().contains("the container runs") {} };
    timeout(stretched(Duration::from_secs(60)), ready).await.expect("the process started no container");
    let name = format!("killed-{}", killed.id().unwrap());
    killed.kill().await.unwrap();
    assert!(is_listed(&name));
    let next = Cri::new(config(std::env::var(ENDPOINT).unwrap(), &fixture.folder, &fixture.store)).await;
    next.unwrap();
    assert!(!is_listed(&name));
    // The sandboxes of a process that lives stay.
    assert!(is_listed(&own.0));
    fixture.runtime.shut_down().await;
    assert!(!is_listed(&own.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_takes_too_long_is_ended() {
    let Some(fixture) = fixture().await else { return };
    let pod = fixture.sandbox("late").await;
    let id = fixture.runtime.start(&pod, fixture.script("echo ready; sleep 1000")).await.unwrap();
    fixture.logged("ready").await;
    let run = async |text: &str, limit: Duration| {
        let words = ["/bin/sh", "-c", text].map(str::to_owned).to_vec();
        fixture.runtime.exec_sync(&id, words, limit).await.unwrap()
    };
    let output = run("echo out; echo no >&2; exit 3", stretched(Duration::from_secs(20))).await.unwrap();
    assert_eq!((output.code, String::from_utf8(output.text).unwrap().as_str()), (3, "out\nno\n"));
    assert_eq!(run("exec sleep 777", Duration::from_secs(1)).await, None);
    // The words of the search are not found: `7[7]7` does not match itself.
    let (_, found) = fixture.exec(&id, &["/bin/sh", "-c", "grep -l '7[7]7' /proc/[0-9]*/cmdline"]).await;
    assert_eq!(found, "", "processes are left");
    fixture.runtime.shut_down().await;
}
