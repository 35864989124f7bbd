//! `exec`, `attach`, `portforward` and `proxy` with a node whose containers are processes of this machine.

use std::convert::Infallible;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::Method;
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::harness::{Host, Reply, deadline};

fn text(reply: &Reply) -> String {
    String::from_utf8_lossy(&reply.body).into_owned()
}

type Socket = WebSocketStream<TlsStream<TcpStream>>;

/// The output of a command, by channel.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    stdout: String,
    stderr: String,
    error: String,
}

/// Listens until the server closes the connection.
async fn hear(socket: &mut Socket) -> Heard {
    let mut heard = Heard::default();
    let listening = async {
        while let Some(Ok(message)) = socket.next().await {
            if let Message::Close(close) = &message {
                let code = close.as_ref().map(|close| u16::from(close.code));
                assert_eq!(code, Some(1000), "Go's clients take another end for an error");
            }
            let Message::Binary(bytes) = message else { continue };
            let text = String::from_utf8_lossy(&bytes[1..]).into_owned();
            match bytes[0] {
                1 => heard.stdout += &text,
                2 => heard.stderr += &text,
                3 => heard.error += &text,
                other => panic!("channel {other}"),
            }
        }
    };
    tokio::time::timeout(deadline(), listening).await.expect("an end in time");
    heard
}

fn exec(script: &str) -> String {
    let script = script.replace(' ', "%20").replace(';', "%3B").replace('&', "%26").replace('>', "%3E");
    format!("exec?container=c&command=sh&command=-c&command={script}&stdout=1&stderr=1")
}

#[tokio::test]
async fn a_command_sends_its_output_and_its_end() {
    let (api, pods) = Host::serve().await;
    for version in ["v5.channel.k8s.io", "v4.channel.k8s.io"] {
        let path = format!("{pods}/web/{}", exec("echo out; echo err >&2; exit 3"));
        let heard = hear(&mut api.websocket_with(&path, version).await.unwrap()).await;
        assert_eq!((heard.stdout.as_str(), heard.stderr.as_str()), ("out\n", "err\n"));
        let status: serde_json::Value = serde_json::from_str(&heard.error).unwrap();
        assert_eq!(status["reason"], "NonZeroExitCode");
        assert_eq!(status["details"]["causes"], json!([{"reason": "ExitCode", "message": "3"}]));
        let path = format!("{pods}/web/{}", exec("true"));
        let heard = hear(&mut api.websocket_with(&path, version).await.unwrap()).await;
        assert_eq!(heard.error, r#"{"metadata":{},"status":"Success"}"#);
    }
}

#[tokio::test]
async fn the_first_version_sends_texts() {
    let (api, pods) = Host::serve().await;
    let path = format!("{pods}/web/{}", exec("exit 3"));
    let heard = hear(&mut api.websocket(&path).await.unwrap()).await;
    assert!(heard.error.starts_with("command terminated with non-zero exit code"), "{}", heard.error);
    let path = format!("{pods}/web/{}", exec("true"));
    assert_eq!(hear(&mut api.websocket_with(&path, "channel.k8s.io").await.unwrap()).await, Heard::default());
}

#[tokio::test]
async fn version_5_closes_the_input() {
    let (api, pods) = Host::serve().await;
    let path = format!("{pods}/web/exec?container=c&command=wc&command=-c&stdin=1&stdout=1");
    let mut socket = api.websocket_with(&path, "v5.channel.k8s.io").await.unwrap();
    for _ in 0..10 {
        let mut message = vec![b'x'; 100_001];
        message[0] = 0;
        socket.send(Message::Binary(message.into())).await.unwrap();
    }
    socket.send(Message::Binary(vec![255, 0].into())).await.unwrap();
    let heard = hear(&mut socket).await;
    assert_eq!((heard.stdout.trim(), heard.error.contains("Success")), ("1000000", true));
}

#[tokio::test]
async fn a_terminal_has_the_size_of_the_client() {
    let (api, pods) = Host::serve().await;
    let path = format!("{pods}/web/exec?container=c&command=sh&stdin=1&stdout=1&tty=1");
    let mut socket = api.websocket_with(&path, "v4.channel.k8s.io").await.unwrap();
    let resize = b"\x04{\"Width\":123,\"Height\":45}".to_vec();
    socket.send(Message::Binary(resize.into())).await.unwrap();
    let ask = "\0until stty size | grep '45 123'; do sleep 0.05; done; exit 7\n";
    socket.send(Message::Binary(ask.as_bytes().to_vec().into())).await.unwrap();
    let heard = hear(&mut socket).await;
    assert!(heard.stdout.contains("45 123\r\n"), "{heard:?}");
    assert!(heard.error.contains(r#""message":"7""#), "{heard:?}");
}

#[tokio::test]
async fn what_does_not_run_has_the_words_of_the_real_server() {
    let (api, pods) = Host::serve().await;
    let path = format!("{pods}/web/exec?container=gone&command=true&stdout=1");
    let refused = api.websocket_with(&path, "v4.channel.k8s.io").await;
    let Err(Error::Http(reply)) = refused else { panic!("not refused") };
    assert_eq!(reply.status().as_u16(), 500);
    assert_eq!(reply.body().as_deref(), Some(br#"container not found ("gone")"#.as_slice()));
    let heard = hear(&mut api.websocket_with(&path, "v5.channel.k8s.io").await.unwrap()).await;
    let why = r#"Internal error occurred: unable to upgrade connection: container not found (\"gone\")"#;
    assert!(heard.error.contains(why), "{heard:?}");
    let path = format!("{pods}/web/exec?container=c&command=no-such-program&stdout=1");
    let heard = hear(&mut api.websocket_with(&path, "v4.channel.k8s.io").await.unwrap()).await;
    assert!(heard.error.contains("error executing command in container: exec:"), "{heard:?}");
    let refused = api.websocket_with(&path, "v9.channel.k8s.io").await;
    assert!(matches!(refused, Err(Error::Http(reply)) if reply.status() == 403));
    let none = format!("{pods}/web/exec?container=c&command=true");
    let refused = api.websocket_with(&none, "v4.channel.k8s.io").await;
    let Err(Error::Http(reply)) = refused else { panic!("not refused") };
    assert_eq!(reply.status().as_u16(), 400);
}

#[tokio::test]
async fn the_input_of_an_attached_container_comes_back() {
    let (api, pods) = Host::serve().await;
    let path = format!("{pods}/web/attach?container=c&stdin=1&stdout=1");
    let mut socket = api.websocket_with(&path, "v5.channel.k8s.io").await.unwrap();
    socket.send(Message::Binary(b"\0hello".to_vec().into())).await.unwrap();
    socket.send(Message::Binary(vec![255, 0].into())).await.unwrap();
    let heard = hear(&mut socket).await;
    assert_eq!(
        heard,
        Heard {
            stdout: "hello".to_owned(),
            error: r#"{"metadata":{},"status":"Success"}"#.to_owned(),
            ..Heard::default()
        }
    );
}

#[tokio::test]
async fn a_server_that_stops_says_so() {
    let server = windlass_apiserver::Server::builder().nodes(Host).build().unwrap();
    let listening = server.listen(windlass_apiserver::Listen::default()).await.unwrap();
    let api = crate::harness::Api::embedded(&server);
    let pods = Host::pod(&api).await;
    let path = format!("{pods}/web/exec?container=c&command=sleep&command=600&stdout=1");
    let mut socket = api.websocket_with(&path, "v4.channel.k8s.io").await.unwrap();
    // The first message says that the command runs.
    socket.next().await.unwrap().unwrap();
    drop(listening);
    drop(api);
    drop(server);
    let heard = hear(&mut socket).await;
    assert!(heard.error.contains("the server is shutting down"), "{heard:?}");
}

/// Sends everything back until the client has sent all, and then `bye`. Returns the port.
async fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = stream.split();
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
                let _ = writer.write_all(b"bye").await;
            });
        }
    });
    port
}

#[tokio::test]
async fn each_forwarded_port_has_two_channels() {
    let (api, pods) = Host::serve().await;
    let (open, closed) = (echo().await, unused_port().await);
    let path = format!("{pods}/web/portforward?ports={open}&ports={closed}");
    let mut socket = api.websocket_with(&path, "v4.channel.k8s.io").await.unwrap();
    let mut channels = vec![Vec::new(); 4];
    socket.send(Message::Binary(b"\0ping".to_vec().into())).await.unwrap();
    let listening = async {
        while channels[0].len() < 6 || channels[3].len() < 20 {
            let Some(Ok(Message::Binary(bytes))) = socket.next().await else { panic!("an early end") };
            channels[usize::from(bytes[0])].extend_from_slice(&bytes[1..]);
        }
    };
    tokio::time::timeout(deadline(), listening).await.expect("the bytes in time");
    let [open, closed] = [open, closed].map(u16::to_le_bytes);
    assert_eq!(channels[0], [&open[..], b"ping"].concat());
    assert_eq!(channels[1], open);
    assert_eq!(channels[2], closed);
    assert_eq!(channels[3][..2], closed);
    let why = String::from_utf8_lossy(&channels[3][2..]).into_owned();
    assert!(why.contains("error forwarding port") && why.contains("connection refused"), "{why}");
}

async fn unused_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

/// Answers an HTTP request with the request in the body. Returns the port.
async fn http() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = vec![0; 16 << 10];
            let size = stream.read(&mut buffer).await.unwrap_or(0);
            let asked = String::from_utf8_lossy(&buffer[..size]).into_owned();
            let reply = if asked.contains("upgrade: echo") {
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhi "
                    .to_owned()
            } else {
                let head = "HTTP/1.1 302 Found\r\nLocation: /login\r\nX-Own: yes\r\nConnection: close";
                format!("{head}\r\nContent-Length: {}\r\n\r\n{asked}", asked.len())
            };
            let _ = stream.write_all(reply.as_bytes()).await;
            if reply.starts_with("HTTP/1.1 101") {
                let (mut reader, mut writer) = stream.split();
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
            }
        }
    });
    port
}

#[tokio::test]
async fn a_proxied_request_reaches_the_pod() {
    let (api, pods) = Host::serve().await;
    let port = http().await;
    let proxy = format!("{pods}/web:{port}/proxy");
    let reply = api.get(&format!("{proxy}/a%20b/?c=d")).await;
    assert_eq!(reply.code, 302, "{reply}");
    assert_eq!(reply.header("location"), Some(format!("{proxy}/login").as_str()));
    assert_eq!(reply.header("x-own"), Some("yes"));
    let asked = text(&reply).to_lowercase();
    assert!(asked.starts_with("get /a%20b/?c=d http/1.1\r\n"), "{asked}");
    assert!(asked.contains(&format!("x-forwarded-uri: {proxy}/a%20b/").to_lowercase()), "{asked}");
    assert!(!asked.contains("authorization"), "{asked}");
    let root = api.get(&format!("{proxy}?x=1")).await;
    assert_eq!((root.code, root.header("location")), (301, Some(format!("{proxy}/?x=1").as_str())));
    let closed = unused_port().await;
    let refused = api.get(&format!("{pods}/web:{closed}/proxy/")).await;
    assert_eq!(refused.code, 503);
    assert!(refused.to_string().contains("error trying to reach service:"), "{refused}");
}

/// Answers HTTP requests with the number of bytes of their bodies, and reports the first byte of each body at once.
async fn counting() -> (u16, mpsc::UnboundedReceiver<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (seen, firsts) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let seen = seen.clone();
            let count = service_fn(move |request: http::Request<Incoming>| {
                let seen = seen.clone();
                async move {
                    let (mut body, mut size) = (request.into_body(), 0);
                    while let Some(Ok(frame)) = body.frame().await {
                        let data = frame.into_data().unwrap_or_default();
                        if size == 0 && !data.is_empty() {
                            let _ = seen.send(data[0]);
                        }
                        size += data.len();
                    }
                    Ok::<_, Infallible>(http::Response::new(Full::new(Bytes::from(size.to_string()))))
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), count));
        }
    });
    (port, firsts)
}

#[tokio::test]
async fn the_body_of_a_proxied_request_has_no_limit_and_is_passed_on_as_it_arrives() {
    let (api, pods) = Host::serve().await;
    let (port, mut firsts) = counting().await;
    let path = format!("{pods}/web:{port}/proxy/upload");
    let large = vec![b'a'; 8 << 20];
    let reply = api.request(Method::POST, &path).body("application/octet-stream", large).send().await;
    assert_eq!((reply.code, text(&reply).as_str()), (200, "8388608"));
    assert_eq!(firsts.recv().await, Some(b'a'));
    let empty = api.request(Method::POST, &path).send().await;
    assert_eq!((empty.code, text(&empty).as_str()), (200, "0"));

    // The backend has the first byte before the client sends the second.
    let mut connection = api.connect().await;
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n1");
    connection.write_all(head.as_bytes()).await.unwrap();
    let first = tokio::time::timeout(deadline(), firsts.recv()).await.expect("the first byte in time");
    assert_eq!(first, Some(b'1'));
    connection.write_all(b"2").await.unwrap();
    let mut reply = String::new();
    let read = connection.read_to_string(&mut reply);
    tokio::time::timeout(deadline(), read).await.expect("a reply in time").unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 ") && reply.ends_with("\r\n\r\n2"), "{reply}");
}

#[tokio::test]
async fn a_proxied_service_reaches_a_ready_endpoint() {
    let (api, pods) = Host::serve().await;
    let namespace = pods.trim_end_matches("/pods");
    let port = http().await;
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"name": "http", "port": 80}]}});
    api.post(&format!("{namespace}/services"), service).await.is(201);
    let target = json!({"kind": "Pod", "name": "web"});
    let slice = json!({
        "metadata": {"name": "s-1", "labels": {"kubernetes.io/service-name": "s"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.0.7"], "conditions": {"ready": true}, "targetRef": target}],
        "ports": [{"name": "http", "port": port}],
    });
    let slices = namespace.replace("/api/v1", "/apis/discovery.k8s.io/v1") + "/endpointslices";
    api.post(&slices, slice).await.is(201);
    for name in ["s:80", "s:http", "http:s:http"] {
        let reply = api.get(&format!("{namespace}/services/{name}/proxy/x")).await;
        assert_eq!((reply.code, reply.header("x-own")), (302, Some("yes")), "{name}: {reply}");
    }
    // Without a port, the request is for a port without a name.
    api.get(&format!("{namespace}/services/s/proxy/x")).await.is(503);
}

#[tokio::test]
async fn a_proxied_connection_may_change_its_protocol() {
    let (api, pods) = Host::serve().await;
    let port = http().await;
    let mut connection = api.connect().await;
    let head = format!(
        "GET {pods}/web:{port}/proxy/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nthere"
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    let reading = async {
        while !received.ends_with(b"hi there") {
            assert!(connection.read_buf(&mut received).await.unwrap() > 0, "an early end");
        }
    };
    tokio::time::timeout(deadline(), reading).await.expect("the bytes in time");
    assert!(received.starts_with(b"HTTP/1.1 101 "));
}

#[tokio::test]
async fn a_node_may_have_the_log() {
    let (api, pods) = Host::serve().await;
    let log = api.get(&format!("{pods}/web/log?container=c&tailLines=2&follow=true")).await;
    assert_eq!(text(&log), "c tail Some(2) follow true\n");
    let simulated = api.get(&format!("{pods}/web/log?container=gone")).await;
    assert!(text(&simulated).starts_with("windlass: the container"), "{simulated}");
}

#[tokio::test]
async fn long_running_requests_are_counted() {
    let (api, pods) = Host::serve().await;
    let path = format!("{pods}/web/exec?container=c&command=cat&stdin=1&stdout=1");
    let mut socket = api.websocket_with(&path, "v5.channel.k8s.io").await.unwrap();
    let count = async || {
        let page = text(&api.get("/metrics").await);
        let line = page.lines().find(|line| {
            line.starts_with("apiserver_longrunning_requests{") && line.contains(r#"subresource="exec""#)
        });
        line.and_then(|line| line.rsplit(' ').next()).unwrap_or("none").to_owned()
    };
    assert_eq!(count().await, "1");
    socket.send(Message::Binary(vec![255, 0].into())).await.unwrap();
    hear(&mut socket).await;
    let ended = async {
        while count().await != "0" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(deadline(), ended).await.expect("an end in time");
}

/// Serves for clients by hand, until the file named by `WINDLASS_STREAMS_KUBECONFIG` is removed. See `contrib/streams`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "serves for clients that are run by hand"]
async fn serve_for_clients() {
    let Ok(file) = std::env::var("WINDLASS_STREAMS_KUBECONFIG") else { return };
    let server = windlass_apiserver::Server::builder().nodes(Host).build().unwrap();
    let listening = server.listen(windlass_apiserver::Listen::default()).await.unwrap();
    let api = crate::harness::Api::embedded(&server);
    let pods = Host::pod(&api).await;
    let namespace = pods.split('/').nth(4).unwrap_or_default().to_owned();
    let kubeconfig = listening.kubeconfig().replace("namespace: default", &format!("namespace: {namespace}"));
    std::fs::write(&file, kubeconfig).unwrap();
    while std::fs::exists(&file).unwrap() {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    listening.shutdown().await;
}
