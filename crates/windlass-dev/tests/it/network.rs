//! Names and UDP ports of Services, and listeners after a new network.

use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Service};
use kube_client::api::Api;
use kube_core::ResourceExt;
use serde_json::json;
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, QCLASS, Question, RCODE, TYPE};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use windlass_controllers::PodMode;
use windlass_patience::stretched;

use crate::stage::{Stage, eventually, is_ready, pod};

const NAME_SERVER: &str = "10.0.0.10:53";

/// Encodes a question.
fn question(name: &str, kind: TYPE) -> Vec<u8> {
    let mut packet = Packet::new_query(1);
    let class = QCLASS::CLASS(CLASS::IN);
    packet.questions.push(Question::new(Name::new(name).unwrap(), kind.into(), class, false));
    packet.build_bytes_vec().unwrap()
}

/// Returns the code and the records of an answer, as text.
fn read(answer: &[u8]) -> (RCODE, Vec<String>) {
    let answer = Packet::parse(answer).unwrap();
    let text = |data: &RData<'_>| match data {
        RData::A(address) => std::net::Ipv4Addr::from(address.address).to_string(),
        RData::CNAME(target) => target.0.to_string(),
        RData::SRV(port) => format!("{}:{}", port.target, port.port),
        other => format!("{other:?}"),
    };
    (answer.rcode(), answer.answers.iter().map(|record| text(&record.rdata)).collect())
}

/// Sends a datagram and returns the answer.
async fn ask(to: SocketAddr, message: &[u8]) -> Result<Vec<u8>, String> {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.send_to(message, to).await.map_err(|error| error.to_string())?;
    let mut answer = vec![0; 4096];
    let received = tokio::time::timeout(stretched(Duration::from_secs(1)), socket.recv(&mut answer)).await;
    let length = received.map_err(|_| "no answer")?.map_err(|error| error.to_string())?;
    answer.truncate(length);
    Ok(answer)
}

/// Asks the name server over UDP.
async fn resolve(stage: &Stage, name: &str, kind: TYPE) -> Result<(RCODE, Vec<String>), String> {
    let server = stage.runtime.state().sockets.get(&NAME_SERVER.parse().unwrap()).copied();
    let server = server.ok_or("there is no name server")?;
    ask(server, &question(name, kind)).await.map(|answer| read(&answer))
}

/// Waits until a name resolves to these records.
async fn resolves(stage: &Stage, name: &str, kind: TYPE, records: &[&str]) {
    eventually(|| async {
        match resolve(stage, name, kind).await? {
            (RCODE::NoError, found) if found == records => Ok(()),
            other => Err(format!("{name}: {other:?}")),
        }
    })
    .await;
}

#[tokio::test]
async fn programs_resolve_the_names_of_services() {
    let stage = Stage::new(PodMode::Local).await;
    let mut server = pod("server", &json!({}));
    server["metadata"]["labels"] = json!({"app": "server"});
    server["spec"]["hostname"] = json!("first");
    server["spec"]["subdomain"] = json!("headless");
    let uid = stage.create::<Pod>(server).await.uid().unwrap();
    let address = stage.becomes("server", is_ready).await.status.unwrap().pod_ip.unwrap();
    let resolver = stage.runtime.state().sandboxes[&uid].resolver.clone().unwrap();
    assert_eq!(resolver.servers, ["10.0.0.10".parse::<std::net::IpAddr>().unwrap()]);
    assert_eq!(resolver.searches[..2], ["default.svc.cluster.local", "svc.cluster.local"]);
    assert_eq!(resolver.options, ["ndots:5"]);
    let dns: Api<Service> = Api::namespaced(stage.client.clone(), "kube-system");
    let dns = dns.get("kube-dns").await.unwrap().spec.unwrap();
    assert_eq!(dns.cluster_ip.as_deref(), Some("10.0.0.10"));

    let ports = json!([{"name": "http", "port": 80, "targetPort": 8080}]);
    let selector = json!({"app": "server"});
    let web = json!({"metadata": {"name": "web"}, "spec": {"selector": selector, "ports": ports}});
    let web = stage.create::<Service>(web).await.spec.unwrap().cluster_ip.unwrap();
    let headless = json!({"clusterIP": "None", "selector": selector, "ports": ports});
    stage.create::<Service>(json!({"metadata": {"name": "headless"}, "spec": headless})).await;
    let alias = json!({"type": "ExternalName", "externalName": "web.default.svc.cluster.local"});
    stage.create::<Service>(json!({"metadata": {"name": "alias"}, "spec": alias})).await;

    let full = |name: &str| format!("{name}.default.svc.cluster.local");
    resolves(&stage, &full("web"), TYPE::A, &[&web]).await;
    resolves(&stage, &full("kubernetes"), TYPE::A, &["10.0.0.1"]).await;
    resolves(&stage, "kube-dns.kube-system.svc.cluster.local", TYPE::A, &["10.0.0.10"]).await;
    resolves(&stage, &full("headless"), TYPE::A, &[&address]).await;
    resolves(&stage, &full("first.headless"), TYPE::A, &[&address]).await;
    resolves(&stage, &full("alias"), TYPE::A, &[&full("web"), &web]).await;
    resolves(&stage, &full("_http._tcp.web"), TYPE::SRV, &[&format!("{}:80", full("web"))]).await;
    let in_pod = format!("{}:8080", full("first.headless"));
    resolves(&stage, &full("_http._tcp.headless"), TYPE::SRV, &[&in_pod]).await;
    resolves(&stage, &full("web"), TYPE::AAAA, &[]).await;
    let nobody = resolve(&stage, &full("nobody"), TYPE::A).await.unwrap();
    assert_eq!(nobody, (RCODE::NameError, Vec::new()));

    // The same over TCP.
    let server = stage.runtime.state().listeners[&NAME_SERVER.parse().unwrap()];
    let mut stream = TcpStream::connect(server).await.unwrap();
    let asked = question(&full("web"), TYPE::A);
    stream.write_u16(asked.len() as u16).await.unwrap();
    stream.write_all(&asked).await.unwrap();
    let mut answer = vec![0; usize::from(stream.read_u16().await.unwrap())];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(read(&answer), (RCODE::NoError, vec![web]));
    stage.plane.stop().await;
}

#[tokio::test]
async fn datagrams_to_a_service_reach_a_pod_and_come_back() {
    let stage = Stage::new(PodMode::Local).await;
    let mut server = pod("server", &json!({}));
    server["metadata"]["labels"] = json!({"app": "server"});
    stage.create::<Pod>(server).await;
    stage.becomes("server", is_ready).await;
    let program = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    stage.runtime.state().datagram_ports.insert(5353, program.local_addr().unwrap());
    tokio::spawn(async move {
        let mut message = [0; 100];
        while let Ok((length, from)) = program.recv_from(&mut message).await {
            let _ = program.send_to(&[b"answer to ", &message[..length]].concat(), from).await;
        }
    });
    // TCP and UDP on the same port.
    let ports = json!([
        {"name": "udp", "port": 53, "targetPort": 5353, "protocol": "UDP"},
        {"name": "tcp", "port": 53, "targetPort": 5353, "protocol": "TCP"},
    ]);
    let spec = json!({"selector": {"app": "server"}, "ports": ports});
    let service = stage.create::<Service>(json!({"metadata": {"name": "names"}, "spec": spec})).await;
    let address: SocketAddr = format!("{}:53", service.spec.unwrap().cluster_ip.unwrap()).parse().unwrap();
    eventually(|| async {
        let socket = stage.runtime.state().sockets.get(&address).copied();
        let answer = ask(socket.ok_or("nobody receives")?, b"a question").await?;
        (answer == b"answer to a question").then_some(()).ok_or_else(|| format!("{answer:?}"))
    })
    .await;
    assert!(stage.runtime.state().listeners.contains_key(&address));
    stage.plane.stop().await;
}

#[tokio::test]
async fn services_are_listened_for_again_after_a_new_network() {
    let stage = Stage::new(PodMode::Local).await;
    stage.create::<Pod>(pod("first", &json!({}))).await;
    stage.becomes("first", is_ready).await;
    let address: SocketAddr = "10.0.0.1:443".parse().unwrap();
    let before = stage.runtime.state().listeners[&address];
    stage.create::<Pod>(pod("second", &json!({}))).await;
    stage.becomes("second", is_ready).await;
    assert_eq!(stage.runtime.state().listeners[&address], before);
    stage.runtime.state().network += 1;
    stage.create::<Pod>(pod("third", &json!({}))).await;
    stage.becomes("third", is_ready).await;
    let after = stage.runtime.state().listeners[&address];
    assert_ne!(after, before);
    TcpStream::connect(after).await.unwrap();
    stage.plane.stop().await;
}
