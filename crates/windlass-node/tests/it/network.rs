//! The network of pods: services, other pods, and addresses without a program.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use windlass_node::probe::{self, Check, CheckResult};
use windlass_node::{ContainerId, ContainerSpec, Mount, Resolver, Runtime, SandboxId};
use windlass_patience::stretched;

use crate::fixture::{Fixture, fixture, sandbox_spec};

/// Answers every connection with a line.
fn serve(listener: TcpListener, line: &'static str) {
    tokio::spawn(async move {
        while let Ok((mut stream, peer)) = listener.accept().await {
            let _ = stream.write_all(format!("{line} for {}\n", peer.ip()).as_bytes()).await;
        }
    });
}

/// Creates a sandbox with an address of its own.
async fn pod(fixture: &Fixture, name: &str, address: &str) -> SandboxId {
    let id = SandboxId(name.into());
    let spec = windlass_node::SandboxSpec { address: address.parse().unwrap(), ..sandbox_spec(&id) };
    fixture.runtime.create_sandbox(spec).await.unwrap();
    id
}

/// Starts a script with a log of its own. The script finds Perl if the machine has Perl.
async fn start(fixture: &Fixture, pod: &SandboxId, text: &str) -> ContainerId {
    let log = fixture.folder.path().join("logs").join(format!("{}.log", pod.0));
    let spec = ContainerSpec { log, mounts: with_perl(), ..fixture.script(text) };
    fixture.runtime.start(pod, spec).await.unwrap()
}

/// The folders with the machine's Perl.
pub(crate) fn with_perl() -> Vec<Mount> {
    let folders = [("/usr", "/usr"), ("/usr/lib", "/lib"), ("/usr/lib64", "/lib64")];
    let there = folders.iter().filter(|(source, _)| Path::new(source).exists());
    let mount = |(source, target): &(&str, &str)| Mount {
        source: source.into(),
        target: target.into(),
        read_only: true,
    };
    there.map(mount).collect()
}

/// A program that answers each datagram with a word. `None`, with the reason printed, if the machine has no Perl.
pub(crate) fn datagram_server(port: u16, word: &str) -> Option<String> {
    if !Path::new("/usr/bin/perl").exists() {
        println!("skipped: there is no Perl");
        return None;
    }
    let server = format!("$s = IO::Socket::INET->new(LocalPort => {port}, Proto => 'udp') or die $!");
    let answer = format!("while ($c = $s->recv($b, 100)) {{ $s->send('{word}', 0, $c) }}");
    Some(format!("/usr/bin/perl -MIO::Socket::INET -e \"{server}; {answer}\"").replace('$', "\\$"))
}

/// A command that sends a datagram and prints the answer.
fn ask_with_datagram(address: &str) -> String {
    let client = format!("$s = IO::Socket::INET->new(PeerAddr => '{address}', Proto => 'udp') or die $!");
    let ask = "$s->send('?'); alarm 2; $s->recv($b, 100); print $b";
    format!("/usr/bin/perl -MIO::Socket::INET -e \"{client}; {ask}\"").replace('$', "\\$")
}

/// Repeats a command in a container until the command says a text.
async fn says(fixture: &Fixture, id: &ContainerId, command: &str, text: &str) {
    let begun = Instant::now();
    loop {
        let (_, said) = fixture.exec(id, &["sh", "-c", command]).await;
        if said.contains(text) {
            return;
        }
        assert!(begun.elapsed() < stretched(Duration::from_secs(20)), "{command}: {said:?}, not {text:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_listens_on_all_addresses_beside_services_with_the_same_port() {
    let Some(fixture) = fixture().await else { return };
    let server = pod(&fixture, "server", "10.244.0.3").await;
    let client = pod(&fixture, "client", "10.244.0.4").await;
    let address: SocketAddr = "10.0.0.9:8080".parse().unwrap();
    serve(fixture.runtime.listen(address).await.unwrap(), "the service");
    let script = "while :; do echo the program | nc -l -p 8080; done";
    let server = start(&fixture, &server, script).await;
    let client = start(&fixture, &client, "sleep 1000").await;
    says(&fixture, &server, "nc -w 5 127.0.0.1 8080", "the program").await;
    says(&fixture, &server, "nc -w 5 10.0.0.9 8080", "the service for 10.244.0.3").await;
    says(&fixture, &client, "nc -w 5 10.0.0.9 8080", "the service for 10.244.0.4").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_reach_each_other_at_their_addresses() {
    let Some(fixture) = fixture().await else { return };
    let server = pod(&fixture, "server", "10.244.0.3").await;
    let client = pod(&fixture, "client", "10.244.0.4").await;
    start(&fixture, &server, "while :; do echo stream | nc -l -p 5432; done").await;
    let id = start(&fixture, &client, "sleep 1000").await;
    says(&fixture, &id, "nc -w 5 10.244.0.3 5432", "stream").await;
    if let Some(script) = datagram_server(5353, "datagram") {
        start(&fixture, &server, &script).await;
        says(&fixture, &id, &ask_with_datagram("10.244.0.3:5353"), "datagram").await;
    }
    start(&fixture, &client, "while :; do echo own | nc -l -p 7000; done").await;
    says(&fixture, &id, "nc -w 5 10.244.0.4 7000", "own").await;

    // The address of a pod that is gone is refused, as is an address that no pod has had.
    fixture.runtime.remove_sandbox(&server).await.unwrap();
    for address in ["10.244.0.3 5432", "10.244.77.1 80", "10.0.0.77 80"] {
        let begun = Instant::now();
        let (code, said) = fixture.exec(&id, &["sh", "-c", &format!("nc -w 60 {address}")]).await;
        assert!(code != 0 && begun.elapsed() < stretched(Duration::from_secs(20)), "{address}: {said}");
    }
    let (code, said) = fixture.exec(&id, &["nc", "-w", "60", "10.244.77.1", "80"]).await;
    assert!(code != 0 && said.contains("refused"), "{said}");
    // An address outside of the ranges has no route.
    let (code, said) = fixture.exec(&id, &["nc", "-w", "60", "192.0.2.1", "80"]).await;
    assert!(code != 0 && said.contains("unreachable"), "{said}");
    let again = pod(&fixture, "again", "10.244.0.3").await;
    start(&fixture, &again, "while :; do echo again | nc -l -p 5432; done").await;
    says(&fixture, &id, "nc -w 5 10.244.0.3 5432", "again").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn datagrams_reach_services_and_programs() {
    let Some(fixture) = fixture().await else { return };
    let client = pod(&fixture, "client", "10.244.0.4").await;
    let service = fixture.runtime.bind("10.0.0.10:53".parse().unwrap()).await.unwrap();
    tokio::spawn(async move {
        let mut buffer = [0; 100];
        while let Ok((_, from)) = service.recv_from(&mut buffer).await {
            let _ = service.send_to(format!("for {}\n", from.ip()).as_bytes(), from).await;
        }
    });
    let Some(script) = datagram_server(5000, "answer") else { return };
    let id = start(&fixture, &client, &script).await;
    says(&fixture, &id, &ask_with_datagram("10.0.0.10:53"), "for 10.244.0.4").await;
    let begun = Instant::now();
    let mut buffer = [0; 100];
    let said = loop {
        // A program that does not listen yet refuses the datagram.
        let socket = fixture.runtime.connect_udp(&client, 5000).await.unwrap();
        let asked = socket.send(b"?").await;
        let answer = tokio::time::timeout(Duration::from_millis(500), socket.recv(&mut buffer)).await;
        if let (Ok(_), Ok(Ok(length))) = (asked, answer) {
            break &buffer[..length];
        }
        assert!(begun.elapsed() < stretched(Duration::from_secs(20)), "no answer");
    };
    assert_eq!(said, b"answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_name_servers_of_a_pod_are_in_its_file() {
    let Some(fixture) = fixture().await else { return };
    let id = SandboxId("names".into());
    let resolver = Resolver {
        servers: vec!["10.0.0.10".parse().unwrap()],
        searches: vec!["a.example".into(), "example".into()],
        options: vec!["ndots:5".into()],
    };
    let spec = windlass_node::SandboxSpec { resolver: Some(resolver), ..sandbox_spec(&id) };
    fixture.runtime.create_sandbox(spec).await.unwrap();
    let (code, text) = fixture.run(&id, fixture.script("cat /etc/resolv.conf")).await;
    let expected = "nameserver 10.0.0.10\nsearch a.example example\noptions ndots:5\n";
    assert_eq!((code, text.as_str()), (0, expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_pods_and_probes_do_not_reach_the_loopback_address_of_a_pod() {
    let Some(fixture) = fixture().await else { return };
    let server = pod(&fixture, "server", "10.244.0.3").await;
    let Some(script) = stream_server("10.244.0.3", 80) else { return };
    let id = start(&fixture, &server, &script).await;
    says(&fixture, &id, "nc -w 5 10.244.0.3 80", "hello").await;
    fixture.runtime.connect_from_outside(&server, 80).await.unwrap();
    fixture.runtime.connect(&server, 80).await.unwrap();

    let Some(script) = stream_server("127.0.0.1", 81) else { return };
    let id = start(&fixture, &server, &script).await;
    says(&fixture, &id, "nc -w 5 127.0.0.1 81", "hello").await;
    // `kubectl port-forward` reaches the program, as in a real cluster.
    fixture.runtime.connect(&server, 81).await.unwrap();
    let error = fixture.runtime.connect_from_outside(&server, 81).await.unwrap_err();
    assert!(error.to_string().contains("dial tcp 10.244.0.3:81"), "{error}");
    let check = Check::Tcp { host: None, port: 81 };
    let probed = probe::run(&fixture.runtime, &server, &id, &check, stretched(Duration::from_secs(20))).await;
    assert!(matches!(probed, CheckResult::Failure(_)), "{probed:?}");
}

/// A program that listens on one address, and says hello. `None`, with the reason printed, if the machine has no Perl.
fn stream_server(address: &str, port: u16) -> Option<String> {
    if !Path::new("/usr/bin/perl").exists() {
        println!("skipped: there is no Perl");
        return None;
    }
    let listen = format!("LocalAddr => '{address}', LocalPort => {port}, Listen => 9");
    let server = format!("$s = IO::Socket::INET->new({listen})");
    let answer = "while ($c = $s->accept) { print $c 'hello'; close $c }";
    Some(format!("/usr/bin/perl -MIO::Socket::INET -e \"{server} or die $!; {answer}\"").replace('$', "\\$"))
}
