use std::net::SocketAddr;

use bytes::Bytes;
use futures::FutureExt;
use http_body_util::{BodyExt, Full};
use tower_service::Service;

use super::*;

/// Answers with who asks and how long the body was; `/watch` never ends.
struct Echo;

impl Handle for Echo {
    fn handle(
        self: Arc<Self>,
        request: Request<RequestBody>,
        identity: Identity,
    ) -> BoxFuture<'static, Response<Body>> {
        async move {
            if request.uri().path() == "/watch" {
                let first = futures::stream::iter([Bytes::from_static(b"first")]);
                let rest = futures::stream::pending();
                return Response::new(Body::stream(futures::StreamExt::chain(first, rest)));
            }
            let groups = identity.groups().join(",");
            match request.into_body().read(&Arc::default()).await {
                Ok((body, _reserved)) => {
                    Response::new(Body::full(format!("{} {groups} {}", identity.name(), body.len())))
                }
                Err(error) => refuse(&error),
            }
        }
        .boxed()
    }
}

/// Answers at a time that the test sets.
#[derive(Default)]
struct At(std::sync::atomic::AtomicI64);

impl At {
    fn set(&self, second: i64) {
        self.0.store(second, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Handle for At {
    fn handle(
        self: Arc<Self>,
        request: Request<RequestBody>,
        identity: Identity,
    ) -> BoxFuture<'static, Response<Body>> {
        Arc::new(Echo).handle(request, identity)
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.load(std::sync::atomic::Ordering::Relaxed)).unwrap()
    }
}

/// Begins to answer, and then waits for ever; `/events` has events without end. Says when a request begins; the receivers learn when the
/// request is dropped.
struct Waiting(tokio::sync::mpsc::UnboundedSender<tokio::sync::oneshot::Receiver<()>>);

impl Handle for Waiting {
    fn handle(
        self: Arc<Self>,
        request: Request<RequestBody>,
        _identity: Identity,
    ) -> BoxFuture<'static, Response<Body>> {
        async move {
            let (held, dropped) = tokio::sync::oneshot::channel();
            self.0.send(dropped).unwrap();
            if request.uri().path() == "/events" {
                let events = futures::stream::repeat_with(move || {
                    let _held = &held;
                    Bytes::from_static(b"{}\n")
                });
                let mut response = Response::new(Body::stream(events));
                response.extensions_mut().insert(crate::body::Messages::Events);
                return response;
            }
            let _held = held;
            std::future::pending().await
        }
        .boxed()
    }
}

async fn text(response: Response<Body>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn in_process_asks_as_its_identity() {
    let mut service = InProcess::new(Arc::new(Echo), Identity::admin());
    let request = Request::new(Full::new(Bytes::from_static(b"12345")));
    let response = service.call(request).await.unwrap();
    assert_eq!(text(response).await, "kubernetes-admin system:masters,system:authenticated 5");
}

mod over_tls {
    use super::strangers::StrangerLimits;
    use super::*;
    use der::asn1::{BitString, ObjectIdentifier, OctetString, UtcTime};
    use der::{Decode, Encode};
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use rcgen::{KeyPair, SigningKey};
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use rustls::sign::SingleCertAndKey;
    use std::time::Duration;
    use windlass_patience::stretched;
    use x509_cert::Certificate;
    use x509_cert::certificate::{TbsCertificate, Version};
    use x509_cert::ext::Extension;
    use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage};
    use x509_cert::time::Time;

    async fn connect(
        listening: &RunningListener,
        user: Option<&ClientCertificate>,
        alpn: &[u8],
    ) -> tokio_rustls::client::TlsStream<tokio::net::TcpStream> {
        connect_to(listening, listening.local_addr().ip(), user, alpn).await.unwrap()
    }

    /// Connects with a server whose certificate must name `address`.
    async fn connect_to(
        listening: &RunningListener,
        address: std::net::IpAddr,
        user: Option<&ClientCertificate>,
        alpn: &[u8],
    ) -> std::io::Result<tokio_rustls::client::TlsStream<tokio::net::TcpStream>> {
        let mut roots = rustls::RootCertStore::empty();
        let pem = listening.authority().certificate_pem().as_bytes();
        roots.add(CertificateDer::from_pem_slice(pem).unwrap()).unwrap();
        let config =
            rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots);
        let mut config = match user {
            None => config.with_no_client_auth(),
            Some(user) => {
                let chain = vec![CertificateDer::from(user.certificate_der().to_vec())];
                let key = PrivateKeyDer::from_pem_slice(user.key_pem().as_bytes()).unwrap();
                let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
                let certified = rustls::sign::CertifiedKey::new(chain, key);
                config.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified)))
            }
        };
        config.alpn_protocols = vec![alpn.to_vec()];
        let stream = tokio::net::TcpStream::connect(listening.local_addr()).await.unwrap();
        tokio_rustls::TlsConnector::from(Arc::new(config)).connect(ServerName::from(address), stream).await
    }

    async fn get(
        listening: &RunningListener,
        user: Option<&ClientCertificate>,
        authorization: Option<&str>,
        path: &str,
    ) -> Response<hyper::body::Incoming> {
        let io = TokioIo::new(connect(listening, user, b"http/1.1").await);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::get(path).header("host", "localhost");
        if let Some(value) = authorization {
            request = request.header("authorization", value);
        }
        sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap()
    }

    async fn text(response: Response<hyper::body::Incoming>) -> String {
        String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    async fn echo() -> RunningListener {
        let options = Listen::default().with_token("t0ken", Identity::user("robot"));
        listen(Arc::new(Echo), options).await.unwrap()
    }

    /// The number of silent connections of [`echo_to_few_strangers`].
    const STRANGERS: usize = 64;

    async fn echo_to_few_strangers() -> RunningListener {
        let mut options = Listen::default();
        options.strangers = StrangerLimits { patient: STRANGERS, largest: STRANGERS };
        listen(Arc::new(Echo), options).await.unwrap()
    }

    #[tokio::test]
    async fn certificates_and_tokens_say_who_asks() {
        let listening = echo().await;
        let jane = listening.authority().client("jane", Some("developers")).unwrap();
        let said = text(get(&listening, Some(&jane), None, "/").await).await;
        assert_eq!(said, "jane developers,system:authenticated 0");
        let said = text(get(&listening, None, Some("Bearer t0ken"), "/").await).await;
        assert_eq!(said, "robot system:authenticated 0");
        let said = text(get(&listening, None, None, "/").await).await;
        assert_eq!(said, "system:anonymous system:unauthenticated 0");
        let refused = get(&listening, None, Some("Bearer wrong"), "/").await;
        assert_eq!(refused.status().as_u16(), 401);
        assert!(text(refused).await.contains(r#""reason":"Unauthorized""#));
        listening.shutdown().await;
    }

    #[tokio::test]
    async fn a_certificate_of_another_authority_does_not_end_the_handshake() {
        let listening = echo().await;
        let stranger =
            CertificateAuthority::generate().unwrap().client("jane", Some(Identity::MASTERS)).unwrap();
        let said = text(get(&listening, Some(&stranger), Some("Bearer t0ken"), "/").await).await;
        assert_eq!(said, "robot system:authenticated 0");
        // As with a wrong token, the user does not become the anonymous user.
        assert_eq!(get(&listening, Some(&stranger), None, "/").await.status().as_u16(), 401);
        listening.shutdown().await;
    }

    /// Changes the certificate of a client and signs the certificate again.
    fn edit(
        authority: &CertificateAuthority,
        client: &mut ClientCertificate,
        edit: impl FnOnce(&mut TbsCertificate),
    ) {
        let mut certificate = Certificate::from_der(client.certificate_der()).unwrap();
        edit(&mut certificate.tbs_certificate);
        let key = KeyPair::from_pem(&authority.key_pem()).unwrap();
        let signature = key.sign(&certificate.tbs_certificate.to_der().unwrap()).unwrap();
        certificate.signature = BitString::from_bytes(&signature).unwrap();
        client.replace(certificate.to_der().unwrap());
    }

    type Edit<'a> = Box<dyn Fn(&mut TbsCertificate) + 'a>;

    fn extension(id: &str, critical: bool, value: &impl Encode) -> Vec<Extension> {
        let value = OctetString::new(value.to_der().unwrap()).unwrap();
        vec![Extension { extn_id: ObjectIdentifier::new_unwrap(id), critical, extn_value: value }]
    }

    #[tokio::test]
    async fn certificates_of_clients_may_have_forms_that_the_web_does_not_use() {
        let listening = echo().await;
        let any = ExtendedKeyUsage(vec![ObjectIdentifier::new_unwrap("2.5.29.37.0")]);
        let for_servers = ExtendedKeyUsage(vec![ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1")]);
        let of_authority = BasicConstraints { ca: true, path_len_constraint: None };
        let past = Time::UtcTime(UtcTime::from_unix_duration(Duration::from_secs(1_000_000)).unwrap());
        let jane = "jane developers,system:authenticated 0";
        let refused = "Unauthorized";
        let cases: [(&str, &str, Edit<'_>); 7] = [
            ("version 1", jane, Box::new(|tbs| (tbs.version, tbs.extensions) = (Version::V1, None))),
            (
                "an authority",
                jane,
                Box::new(|tbs| tbs.extensions = Some(extension("2.5.29.19", true, &of_authority))),
            ),
            ("any purpose", jane, Box::new(|tbs| tbs.extensions = Some(extension("2.5.29.37", false, &any)))),
            (
                "a server",
                refused,
                Box::new(|tbs| tbs.extensions = Some(extension("2.5.29.37", false, &for_servers))),
            ),
            (
                "an unknown extension",
                refused,
                Box::new(|tbs| tbs.extensions = Some(extension("1.2.3.4", true, &any))),
            ),
            (
                "version 1, expired",
                refused,
                Box::new(|tbs| {
                    (tbs.version, tbs.extensions) = (Version::V1, None);
                    tbs.validity.not_after = past;
                }),
            ),
            (
                "version 1, of another issuer",
                refused,
                Box::new(|tbs| {
                    (tbs.version, tbs.extensions) = (Version::V1, None);
                    tbs.issuer = tbs.subject.clone();
                }),
            ),
        ];
        for (form, expected, change) in cases {
            let mut client = listening.authority().client("jane", Some("developers")).unwrap();
            edit(listening.authority(), &mut client, change);
            let said = text(get(&listening, Some(&client), None, "/").await).await;
            assert!(said.contains(expected), "{form}: {said}");
            let said = text(get(&listening, Some(&client), Some("Bearer t0ken"), "/").await).await;
            assert!(said.contains(if expected == jane { jane } else { "robot" }), "{form}: {said}");
        }
        // The signature counts, not only the name of the issuer.
        let stranger = CertificateAuthority::generate().unwrap();
        let mut client = listening.authority().client("jane", None).unwrap();
        edit(&stranger, &mut client, |tbs| (tbs.version, tbs.extensions) = (Version::V1, None));
        assert_eq!(get(&listening, Some(&client), None, "/").await.status().as_u16(), 401);
        listening.shutdown().await;
    }

    #[tokio::test]
    async fn a_certificate_is_valid_from_its_first_to_its_last_second_on_one_connection() {
        const FIRST: u32 = 1_000_000_000;
        let clock = Arc::new(At::default());
        let options = Listen::default().with_token("t0ken", Identity::user("robot"));
        let listening = listen(Arc::clone(&clock) as Arc<dyn Handle>, options).await.unwrap();
        let mut jane = listening.authority().client("jane", None).unwrap();
        let time = |second: u32| {
            Time::UtcTime(UtcTime::from_unix_duration(Duration::from_secs(second.into())).unwrap())
        };
        edit(listening.authority(), &mut jane, |tbs| {
            (tbs.validity.not_before, tbs.validity.not_after) = (time(FIRST), time(FIRST + 60));
        });
        clock.set(i64::from(FIRST) - 1);
        let io = TokioIo::new(connect(&listening, Some(&jane), b"http/1.1").await);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        let expected = [(-1, 401), (0, 200), (60, 200), (61, 401), (30, 200)];
        for (second, status) in expected {
            clock.set(i64::from(FIRST) + second);
            let request = Request::get("/").header("host", "localhost");
            let response =
                sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
            assert_eq!(response.status().as_u16(), status, "at second {second}");
            text(response).await;
        }
        // The token of a request is not affected.
        clock.set(i64::from(FIRST) + 61);
        let request = Request::get("/").header("host", "localhost").header("authorization", "Bearer t0ken");
        let response = sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
        assert_eq!(text(response).await, "robot system:authenticated 0");
    }

    #[tokio::test]
    async fn the_certificate_names_the_service_and_the_advertised_address() {
        let range = "10.20.0.0/28".parse().unwrap();
        let advertised = std::net::IpAddr::from([192, 0, 2, 7]);
        let server = crate::Server::builder().service_range(range).advertise_address(advertised);
        let listening = server.build().unwrap().listen(Listen::default()).await.unwrap();
        for address in [advertised, [10, 20, 0, 1].into(), listening.local_addr().ip()] {
            let connected = connect_to(&listening, address, None, b"h2").await;
            assert!(connected.is_ok(), "{address}: {connected:?}");
        }
        let other = connect_to(&listening, [10, 0, 0, 1].into(), None, b"h2").await;
        assert!(other.is_err(), "no service has the address");
    }

    #[tokio::test]
    async fn a_shutdown_closes_requests_that_do_not_end() {
        let (begin, mut begun) = tokio::sync::mpsc::unbounded_channel();
        let listening = listen(Arc::new(Waiting(begin)), Listen::default()).await.unwrap();
        let mut clients = Vec::new();
        for alpn in [&b"h2"[..], b"http/1.1"] {
            let io = TokioIo::new(connect(&listening, None, alpn).await);
            let request = Request::get("https://localhost/").header("host", "localhost");
            let request = request.body(Full::<Bytes>::default()).unwrap();
            clients.push(if alpn == b"h2" {
                let (mut sender, connection) =
                    hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
                tokio::spawn(connection);
                tokio::spawn(sender.send_request(request))
            } else {
                let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
                tokio::spawn(connection);
                tokio::spawn(sender.send_request(request))
            });
        }
        let mut requests = [begun.recv().await.unwrap(), begun.recv().await.unwrap()];
        // The five seconds pass at once.
        tokio::time::pause();
        listening.shutdown().await;
        tokio::time::resume();
        for request in &mut requests {
            let ended = request.try_recv();
            assert_eq!(ended, Err(tokio::sync::oneshot::error::TryRecvError::Closed), "the request goes on");
        }
        for client in clients {
            assert!(client.await.unwrap().is_err(), "a request without an answer");
        }
    }

    #[tokio::test]
    async fn a_shutdown_closes_a_websocket_whose_client_does_not_read() {
        let (begin, mut begun) = tokio::sync::mpsc::unbounded_channel();
        let listening = listen(Arc::new(Waiting(begin)), Listen::default()).await.unwrap();
        let stream = connect(&listening, None, b"http/1.1").await;
        let url = "wss://localhost/events";
        let (_socket, response) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        assert_eq!(response.status().as_u16(), 101);
        let mut request = begun.recv().await.unwrap();
        // The five seconds pass at once.
        tokio::time::pause();
        listening.shutdown().await;
        tokio::time::resume();
        assert_eq!(request.try_recv(), Err(tokio::sync::oneshot::error::TryRecvError::Closed));
    }

    #[test]
    fn a_new_client_waits_for_no_request_of_other_clients() {
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (server, client) = (runtime(), runtime());
        // From here on, nothing else runs in the runtime of the server.
        let listening = server.block_on(echo());
        client.block_on(async {
            let connected =
                tokio::time::timeout(stretched(Duration::from_secs(20)), connect(&listening, None, b"h2"));
            connected.await.expect("the server begins TLS");
        });
        server.block_on(listening.shutdown());
    }

    #[test]
    fn clients_with_certificates_give_way_to_no_other_client_while_the_server_is_busy() {
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (server, clients) = (runtime(), runtime());
        let listening = server.block_on(echo_to_few_strangers());
        let jane = listening.authority().client("jane", Some("developers")).unwrap();
        // The runtime of the server is busy meanwhile.
        let (first, others) = clients.block_on(async {
            let first = connect(&listening, Some(&jane), b"h2").await;
            let mut others = Vec::new();
            for _ in 0..STRANGERS {
                others.push(connect(&listening, Some(&jane), b"h2").await);
            }
            (first, others)
        });
        let answer = std::thread::spawn(move || {
            clients.block_on(async {
                let io = TokioIo::new(first);
                let (mut sender, connection) =
                    hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
                tokio::spawn(connection);
                let request = Request::get("https://localhost/").body(Full::<Bytes>::default()).unwrap();
                let response = sender.send_request(request).await;
                drop(others);
                response.map(|response| response.status().as_u16())
            })
        });
        let answered = server.block_on(async {
            let answer = tokio::task::spawn_blocking(|| answer.join());
            tokio::time::timeout(stretched(Duration::from_secs(20)), answer).await
        });
        assert_eq!(answered.expect("the server answers").unwrap().unwrap().unwrap(), 200);
    }

    #[test]
    fn a_listener_ends_with_the_runtime_of_the_server() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listening = runtime.block_on(echo());
        let address = listening.local_addr();
        runtime.shutdown_background();
        let end = std::time::Instant::now() + stretched(Duration::from_secs(20));
        while std::net::TcpStream::connect(address).is_ok() {
            assert!(std::time::Instant::now() < end, "the port stays open");
            std::thread::yield_now();
        }
        drop(listening);
    }

    #[tokio::test]
    async fn speaks_http2() {
        let listening = echo().await;
        let io = TokioIo::new(connect(&listening, None, b"h2").await);
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        let request = Request::get("https://localhost/").body(Full::<Bytes>::default()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.version(), http::Version::HTTP_2);
        listening.shutdown().await;
    }

    #[tokio::test]
    async fn a_watch_ends_cleanly_when_the_server_stops() {
        let listening = echo().await;
        let response = get(&listening, None, None, "/watch").await;
        let ((), body) = tokio::join!(listening.shutdown(), response.into_body().collect());
        assert_eq!(body.unwrap().to_bytes(), "first");
    }

    /// Completes when the server closes the connection.
    async fn closed(mut stream: impl tokio::io::AsyncRead + Unpin) {
        let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 64]).await;
    }

    #[tokio::test]
    async fn silent_connections_give_way() {
        let listening = echo_to_few_strangers().await;
        let jane = listening.authority().client("jane", None).unwrap();
        let kept = connect(&listening, Some(&jane), b"http/1.1").await;
        let first = connect(&listening, None, b"h2").await;
        let mut silent = Vec::new();
        for _ in 0..=STRANGERS {
            silent.push(tokio::net::TcpStream::connect(listening.local_addr()).await.unwrap());
        }
        let limit = stretched(Duration::from_secs(20));
        tokio::time::timeout(limit, closed(first)).await.expect("the first silent connection is closed");
        // The connection of a user stays.
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(kept)).await.unwrap();
        tokio::spawn(connection);
        let request = Request::get("/").header("host", "localhost").body(Full::<Bytes>::default()).unwrap();
        assert_eq!(text(sender.send_request(request).await.unwrap()).await, "jane system:authenticated 0");
    }

    #[tokio::test]
    async fn a_connection_with_a_reply_in_progress_is_not_silent() {
        let listening = echo_to_few_strangers().await;
        let io = TokioIo::new(connect(&listening, None, b"h2").await);
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        let get = |path: &str| {
            let uri = format!("https://localhost{path}");
            Request::get(uri).body(Full::<Bytes>::default()).unwrap()
        };
        let mut watch = sender.send_request(get("/watch")).await.unwrap().into_body();
        assert_eq!(watch.frame().await.unwrap().unwrap().into_data().unwrap(), "first");
        let later = connect(&listening, None, b"h2").await;
        let mut silent = Vec::new();
        for _ in 0..=STRANGERS {
            silent.push(tokio::net::TcpStream::connect(listening.local_addr()).await.unwrap());
        }
        let limit = stretched(Duration::from_secs(20));
        tokio::time::timeout(limit, closed(later)).await.expect("a later silent connection is closed");
        let answer = sender.send_request(get("/")).await;
        assert_eq!(answer.expect("the connection stays open").status().as_u16(), 200);
        assert!(watch.frame().now_or_never().is_none(), "the watch goes on");
    }

    #[tokio::test]
    async fn accepted_connections_are_probed() {
        let listener = tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (accepted, _client) = tokio::join!(listener.accept(), tokio::net::TcpStream::connect(address));
        let (stream, _) = accepted.unwrap();
        listen::tune(&stream);
        let socket = socket2::SockRef::from(&stream);
        assert!(socket.keepalive().unwrap() && stream.nodelay().unwrap());
    }

    #[tokio::test]
    async fn headers_may_have_a_megabyte() {
        let listening = echo().await;
        let long = "x".repeat(300_000);
        let io = TokioIo::new(connect(&listening, None, b"h2").await);
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        let request = Request::get("https://localhost/").header("x-long", &long);
        let response = sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        let io = TokioIo::new(connect(&listening, None, b"http/1.1").await);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::get("/").header("host", "localhost").header("x-long", &long);
        for number in 0..300 {
            request = request.header(format!("x-{number}"), "y");
        }
        let response = sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
    }

    #[tokio::test]
    async fn a_taken_port_is_named() {
        let listening = echo().await;
        let error = listen(Arc::new(Echo), Listen::on(listening.local_addr())).await.unwrap_err();
        assert!(error.is_address_in_use());
        let port = listening.local_addr().port().to_string();
        assert!(error.to_string().contains(&port), "{error}");
    }

    #[tokio::test]
    async fn other_machines_are_not_let_in_unasked() {
        let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let error = listen(Arc::new(Echo), Listen::on(everywhere)).await.unwrap_err();
        assert!(error.to_string().contains("other machines"), "{error}");
        listen(Arc::new(Echo), Listen::on(everywhere).allow_remote()).await.unwrap().shutdown().await;
    }

    #[tokio::test]
    async fn the_kubeconfig_names_server_and_authority() {
        let listening = echo().await;
        let text = listening.kubeconfig();
        assert!(text.contains(&format!("server: {}", listening.url())), "{text}");
        assert!(text.contains("certificate-authority-data: "));
    }
}
