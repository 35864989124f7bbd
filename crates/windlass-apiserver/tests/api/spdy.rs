//! `exec` and `portforward` over SPDY/3.1, as kubectl up to 1.30 speaks, and inside of WebSocket messages, as later ones do.

use std::collections::BTreeMap;

use flate2::{Compress, Compression, FlushCompress};
use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::Message;

use crate::harness::{Api, Host, deadline};

/// The client's end of a connection.
struct Client<S> {
    stream: S,
    deflate: Compress,
    /// The bytes of each stream.
    received: BTreeMap<u32, Vec<u8>>,
    /// The streams that the server has closed.
    closed: Vec<u32>,
    accepted: Vec<u32>,
    refused: Vec<u32>,
    pings: Vec<u32>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    fn new(stream: S) -> Self {
        let deflate = Compress::new(Compression::fast(), true);
        let (received, closed, accepted) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { stream, deflate, received, closed, accepted, refused: Vec::new(), pings: Vec::new() }
    }

    async fn control(&mut self, kind: u16, flags: u8, payload: &[u8]) {
        let length = (payload.len() as u32).to_be_bytes();
        let mut frame = [0x80, 3].to_vec();
        frame.extend_from_slice(&kind.to_be_bytes());
        frame.extend_from_slice(&[flags, length[1], length[2], length[3]]);
        frame.extend_from_slice(payload);
        self.stream.write_all(&frame).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    async fn open(&mut self, id: u32, headers: &[(&str, &str)]) {
        let mut block = (headers.len() as u32).to_be_bytes().to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            block.extend_from_slice(&(text.len() as u32).to_be_bytes());
            block.extend_from_slice(text.as_bytes());
        }
        let mut payload = Vec::with_capacity(1024);
        payload.extend_from_slice(&id.to_be_bytes());
        payload.extend_from_slice(&[0; 6]);
        self.deflate.compress_vec(&block, &mut payload, FlushCompress::Sync).unwrap();
        self.control(1, 0, &payload).await;
    }

    async fn send(&mut self, id: u32, data: &[u8], is_last: bool) {
        let mut frame = id.to_be_bytes().to_vec();
        frame.extend_from_slice(&((u32::from(is_last) << 24) | data.len() as u32).to_be_bytes());
        frame.extend_from_slice(data);
        self.stream.write_all(&frame).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Receives frames until `is_enough`, or until the server closes the connection.
    async fn receive(&mut self, is_enough: impl Fn(&Self) -> bool) {
        let receiving = async {
            while !is_enough(self) {
                let Ok(first) = self.stream.read_u32().await else { return };
                let second = self.stream.read_u32().await.unwrap();
                let mut payload = vec![0; (second & 0x00ff_ffff) as usize];
                self.stream.read_exact(&mut payload).await.unwrap();
                let number = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().unwrap());
                match first {
                    id if id >> 31 == 0 => {
                        self.received.entry(id).or_default().extend_from_slice(&payload);
                        if second >> 24 & 1 == 1 {
                            self.closed.push(id);
                        }
                    }
                    0x8003_0002 => self.accepted.push(number(&payload)),
                    0x8003_0003 => self.refused.push(number(&payload)),
                    0x8003_0006 => self.pings.push(number(&payload)),
                    0x8003_0007 => {}
                    other => panic!("frame {other:x}"),
                }
            }
        };
        let done = tokio::time::timeout(deadline(), receiving).await;
        assert!(done.is_ok(), "too late: accepted {:?}, refused {:?}", self.accepted, self.refused);
    }

    fn text(&self, id: u32) -> String {
        String::from_utf8_lossy(self.received.get(&id).map(Vec::as_slice).unwrap_or_default()).into_owned()
    }
}

/// Asks to go on over SPDY.
async fn upgrade(api: &Api, path: &str, versions: &str) -> (String, Client<TlsStream<TcpStream>>) {
    let mut stream = api.connect().await;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\
         X-Stream-Protocol-Version: {versions}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut reply = Vec::new();
    while !reply.ends_with(b"\r\n\r\n") {
        reply.push(stream.read_u8().await.unwrap());
    }
    (String::from_utf8_lossy(&reply).to_lowercase(), Client::new(stream))
}

#[tokio::test]
async fn a_command_has_a_stream_for_each_of_its_own() {
    let (api, pods) = Host::serve().await;
    let script = "cat%3B%20echo%20err%20%3E%262%3B%20exit%203";
    let query = "stdin=1&stdout=1&stderr=1&container=c&command=sh&command=-c&command=";
    let path = format!("{pods}/web/exec?{query}{script}");
    let (reply, mut client) = upgrade(&api, &path, "v5.channel.k8s.io, v4.channel.k8s.io").await;
    assert!(reply.starts_with("http/1.1 101 "), "{reply}");
    assert!(reply.contains("x-stream-protocol-version: v4.channel.k8s.io\r\n"), "{reply}");
    for (id, kind) in [(1, "error"), (3, "stdin"), (5, "stdout"), (7, "stderr")] {
        client.open(id, &[("streamtype", kind)]).await;
    }
    client.control(6, 0, &77_u32.to_be_bytes()).await;
    client.send(3, b"hel", false).await;
    client.send(3, b"lo", true).await;
    client.receive(|client| client.closed.len() == 3).await;
    assert_eq!((client.accepted.as_slice(), client.pings.as_slice()), (&[1, 3, 5, 7][..], &[77][..]));
    assert_eq!((client.text(5), client.text(7)), ("hello".to_owned(), "err\n".to_owned()));
    assert!(client.text(1).contains(r#""reason":"ExitCode""#), "{}", client.text(1));
}

#[tokio::test]
async fn streams_that_a_command_does_not_have_are_refused_and_do_not_keep_the_connection() {
    let (api, pods) = Host::serve().await;
    let path = format!("{pods}/web/exec?stdin=1&stdout=1&container=c&command=cat");
    let (_, mut client) = upgrade(&api, &path, "v4.channel.k8s.io").await;
    for (id, kind) in [(1, "error"), (3, "stdin"), (5, "stdout"), (7, "stdout"), (9, "stderr"), (11, "new")] {
        client.open(id, &[("streamtype", kind)]).await;
    }
    client.receive(|client| client.refused.len() == 3).await;
    assert_eq!(client.refused, [7, 9, 11]);
    client.send(3, b"hello", true).await;
    // Until the server closes the connection.
    client.receive(|_| false).await;
    assert_eq!((client.text(5), client.closed), ("hello".to_owned(), vec![5, 1]));
}

#[tokio::test]
async fn an_unknown_version_is_refused_with_the_known_ones() {
    let (api, pods) = Host::serve().await;
    let path = format!("{pods}/web/exec?stdout=1&container=c&command=true");
    let (reply, _) = upgrade(&api, &path, "v9.channel.k8s.io").await;
    assert!(reply.starts_with("http/1.1 403 "), "{reply}");
    assert!(reply.contains("x-accepted-stream-protocol-versions: v4.channel.k8s.io\r\n"), "{reply}");
}

#[tokio::test]
async fn streams_beyond_the_limit_are_refused() {
    let (api, pods) = Host::serve().await;
    let (_, mut client) = upgrade(&api, &format!("{pods}/web/portforward"), "portforward.k8s.io").await;
    for number in 0..260_u32 {
        let request = number.to_string();
        client.open(number * 2 + 1, &[("streamtype", "error"), ("port", "1"), ("requestid", &request)]).await;
    }
    client.receive(|client| client.accepted.len() + client.refused.len() == 260).await;
    assert_eq!(client.refused, [513, 515, 517, 519]);
    // A number that was used before.
    client.open(1, &[("streamtype", "data")]).await;
    client.receive(|client| client.refused.len() == 5).await;
}

/// Answers with the reverse of the input, after the client's end. Returns the port.
async fn reverse() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut received = Vec::new();
                stream.read_to_end(&mut received).await.unwrap();
                received.reverse();
                stream.write_all(&received).await.unwrap();
            });
        }
    });
    port
}

async fn forward(client: &mut Client<impl AsyncRead + AsyncWrite + Unpin>, port: u16) {
    for number in 0..10_u32 {
        let (port, request) = (port.to_string(), number.to_string());
        let headers = |kind| [("streamtype", kind), ("port", port.as_str()), ("requestid", request.as_str())];
        client.open(number * 4 + 1, &headers("error")).await;
        client.send(number * 4 + 1, b"", true).await;
        client.open(number * 4 + 3, &headers("data")).await;
        client.send(number * 4 + 3, &number.to_be_bytes(), false).await;
        client.send(number * 4 + 3, b"end", true).await;
    }
    client.receive(|client| client.closed.len() == 20).await;
    for number in 0..10_u32 {
        let mut expected = [&number.to_be_bytes()[..], b"end"].concat();
        expected.reverse();
        assert_eq!(client.received.get(&(number * 4 + 3)), Some(&expected), "{number}");
        assert_eq!(client.text(number * 4 + 1), "");
    }
}

#[tokio::test]
async fn a_forwarded_connection_ends_in_each_direction_by_itself() {
    let (api, pods) = Host::serve().await;
    let path = format!("{pods}/web/portforward");
    let (reply, mut client) = upgrade(&api, &path, "portforward.k8s.io").await;
    assert!(reply.starts_with("http/1.1 101 "), "{reply}");
    forward(&mut client, reverse().await).await;
    // A port without a listener.
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port().to_string();
    for (id, kind) in [(101, "error"), (103, "data")] {
        client.open(id, &[("streamtype", kind), ("port", &closed), ("requestid", "x")]).await;
    }
    client.receive(|client| client.closed.len() == 22).await;
    let error = client.text(101);
    assert!(error.starts_with(&format!("error forwarding port {closed} to pod ")), "{error}");
}

#[tokio::test]
async fn a_websocket_may_carry_spdy() {
    let (api, pods) = Host::serve().await;
    let path = format!("{pods}/web/portforward");
    let socket = api.websocket_with(&path, "SPDY/3.1+portforward.k8s.io").await.unwrap();
    let (mut sender, mut receiver) = socket.split();
    let (near, far): (DuplexStream, DuplexStream) = duplex(64 << 10);
    let (mut from_client, mut to_client) = tokio::io::split(far);
    let sending = async {
        let mut buffer = vec![0; 1000];
        while let Ok(size @ 1..) = from_client.read(&mut buffer).await {
            sender.send(Message::Binary(buffer[..size].to_vec().into())).await.unwrap();
        }
    };
    let receiving = async {
        while let Some(Ok(message)) = receiver.next().await {
            if let Message::Binary(bytes) = message {
                to_client.write_all(&bytes).await.unwrap();
            }
        }
    };
    let mut client = Client::new(near);
    let port = reverse().await;
    tokio::select! {
        biased;
        () = forward(&mut client, port) => {}
        _ = futures::future::join(sending, receiving) => panic!("an early end"),
    }
}
