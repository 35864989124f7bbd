//! The HTTP check.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, HOST, LOCATION, USER_AGENT};
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use super::CheckResult;
use super::check::{HttpProbe, dial, dial_error};
use crate::{Runtime, SandboxId};

/// The most requests of a check: the first request and the redirections.
const MOST_REQUESTS: usize = 10;

/// The longest body of a redirection, in bytes.
const MOST_BODY: usize = 10 << 10;

/// Returns the URL, for messages.
pub(super) fn url(probe: &HttpProbe) -> String {
    let scheme = if probe.tls { "https" } else { "http" };
    let slash = if probe.path.starts_with('/') { "" } else { "/" };
    format!("{scheme}://{}:{}{slash}{}", probe.host, probe.port, probe.path)
}

/// The answer to a request.
pub(super) struct Answer {
    status: u16,
    /// Where the server has redirected the request.
    location: Option<String>,
    /// The begin of the body of a redirection.
    body: String,
}

/// Sends the request, and judges the answer.
pub(super) async fn check(runtime: &dyn Runtime, sandbox: &SandboxId, probe: &HttpProbe) -> CheckResult {
    match answer(runtime, sandbox, probe).await {
        Ok(Answer { status: 200..=299, .. }) => CheckResult::Success,
        Ok(Answer { status: 300..=399, body, .. }) => {
            CheckResult::Warning(format!("Probe terminated redirects, Response body: {body}"))
        }
        Ok(Answer { status, .. }) => {
            CheckResult::Failure(format!("HTTP probe failed with statuscode: {status}"))
        }
        Err(reason) => CheckResult::Failure(reason),
    }
}

/// Sends the request, and follows redirections to the same host. Returns the first other answer.
pub(super) async fn answer(
    runtime: &dyn Runtime,
    sandbox: &SandboxId,
    probe: &HttpProbe,
) -> Result<Answer, String> {
    let mut next = probe.clone();
    for _ in 0..MOST_REQUESTS {
        let failed = |reason: String| format!("Get \"{}\": {reason}", url(&next));
        let answer = send(runtime, sandbox, &next).await.map_err(failed)?;
        let location = answer.location.as_deref().and_then(|location| redirected(&next, location));
        match location.filter(|location| location.host == probe.host) {
            Some(location) => next = location,
            None => return Ok(answer),
        }
    }
    Err(format!("Get \"{}\": stopped after {MOST_REQUESTS} redirects", url(&next)))
}

/// Returns the request to the place that a server has redirected a request to.
fn redirected(probe: &HttpProbe, location: &str) -> Option<HttpProbe> {
    let scheme = if probe.tls { "https" } else { "http" };
    let absolute = match location {
        _ if location.contains("://") => location.to_owned(),
        _ if location.starts_with("//") => format!("{scheme}:{location}"),
        _ if location.starts_with('/') => format!("{scheme}://{}:{}{location}", probe.host, probe.port),
        _ => {
            let path = probe.path.split(['?', '#']).next().unwrap_or_default();
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{scheme}://{}:{}{folder}/{location}", probe.host, probe.port)
        }
    };
    let place: Uri = absolute.parse().ok()?;
    let tls = place.scheme_str()?.eq_ignore_ascii_case("https");
    Some(HttpProbe {
        port: place.port_u16().unwrap_or(if tls { 443 } else { 80 }),
        path: place.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
        tls,
        host: place.host()?.to_owned(),
        ..probe.clone()
    })
}

async fn send(runtime: &dyn Runtime, sandbox: &SandboxId, probe: &HttpProbe) -> Result<Answer, String> {
    let host = probe.is_outside.then_some(probe.host.as_str());
    let dialled = dial(runtime, sandbox, host, probe.port).await;
    let stream = dialled.map_err(|error| dial_error(&error, &probe.host, probe.port))?;
    if !probe.tls {
        return exchange(stream, probe).await;
    }
    let name = ServerName::try_from(probe.host.clone())
        .or_else(|_| ServerName::try_from("localhost".to_owned()))
        .map_err(|error| error.to_string())?;
    let connector = TlsConnector::from(Arc::new(configuration()?));
    exchange(connector.connect(name, stream).await.map_err(|error| error.to_string())?, probe).await
}

async fn exchange<S>(stream: S, probe: &HttpProbe) -> Result<Answer, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let request = request(probe)?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let answered = async {
        let reply = sender.send_request(request).await.map_err(|error| error.to_string())?;
        Ok::<Answer, String>(read(reply).await)
    };
    tokio::pin!(answered, connection);
    tokio::select! {
        biased;
        answer = &mut answered => answer,
        // A server that closes the connection may have answered before.
        ended = &mut connection => {
            let reason = ended.err().map_or_else(|| "EOF".to_owned(), |error| error.to_string());
            answered.await.map_err(|_| reason)
        }
    }
}

async fn read(reply: Response<Incoming>) -> Answer {
    let status = reply.status().as_u16();
    if !reply.status().is_redirection() {
        return Answer { status, location: None, body: String::new() };
    }
    let is_followed = matches!(status, 301 | 302 | 303 | 307 | 308);
    let location = reply.headers().get(LOCATION).filter(|_| is_followed);
    let location = location.and_then(|location| location.to_str().ok()).map(str::to_owned);
    let body = Limited::new(reply.into_body(), MOST_BODY).collect().await;
    let body = body.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned()).unwrap_or_default();
    Answer { status, location, body }
}

fn request(
    probe: &HttpProbe,
) -> Result<Request<http_body_util::combinators::BoxBody<Bytes, std::convert::Infallible>>, String> {
    let path = if probe.path.starts_with('/') { probe.path.clone() } else { format!("/{}", probe.path) };
    let given = |name: &str| probe.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    let mut builder = Request::builder().method(Method::GET).uri(path);
    if !given("host") {
        builder = builder.header(HOST, format!("{}:{}", probe.host, probe.port));
    }
    if !given("user-agent") {
        builder = builder.header(USER_AGENT, "kube-probe/1.37");
    }
    if !given("accept") {
        builder = builder.header(ACCEPT, "*/*");
    }
    for (name, value) in &probe.headers {
        builder = builder.header(name, value);
    }
    builder.header("connection", "close").body(Empty::new().boxed()).map_err(|error| error.to_string())
}

fn configuration() -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let verifier = Arc::new(Anything(provider));
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Accepts all certificates: the kubelet does not verify those of probes.
#[derive(Debug)]
struct Anything(Arc<rustls::crypto::CryptoProvider>);

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::probe::{Check, run, run_hook};
    use crate::{ContainerId, DirectoryImages, Plain};

    /// Answers the requests to an address of this machine. Returns the port.
    async fn server(address: &str) -> u16 {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut bytes = [0; 4096];
                let length = stream.read(&mut bytes).await.unwrap();
                let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                let reply = match text.split(' ').nth(1).unwrap_or_default() {
                    "/ok" | "/deep/ok" => "HTTP/1.1 200 OK\r\n",
                    "/local" => "HTTP/1.1 302 Found\r\nlocation: /ok\r\n",
                    "/deep/relative?a=b/c" => "HTTP/1.1 301 Moved\r\nlocation: ok\r\n",
                    "/loop" => "HTTP/1.1 307 Again\r\nlocation: /loop\r\n",
                    "/far" => "HTTP/1.1 302 Found\r\nlocation: http://example.com/\r\n",
                    "/lost" => "HTTP/1.1 302 Found\r\nlocation: /missing\r\n",
                    "/unchanged" => "HTTP/1.1 304 Not Modified\r\n",
                    _ => "HTTP/1.1 404 Not Found\r\n",
                };
                let _ = stream.write_all(format!("{reply}content-length: 0\r\n\r\n").as_bytes()).await;
            }
        });
        port
    }

    fn runtime() -> Plain {
        Plain::new(Arc::new(DirectoryImages::default()), std::env::temp_dir())
    }

    fn probe(port: u16, path: &str) -> HttpProbe {
        HttpProbe { port, path: path.into(), host: "10.244.0.2".into(), ..HttpProbe::default() }
    }

    const LIMIT: Duration = Duration::from_secs(60);

    async fn checked(check: &Check) -> CheckResult {
        run(&runtime(), &SandboxId("p".into()), &ContainerId("c".into()), check, LIMIT).await
    }

    #[tokio::test]
    async fn redirections_to_the_same_host_are_followed() {
        let port = server("127.0.0.1").await;
        let at = async |path: &str| checked(&Check::Http(probe(port, path))).await;
        for path in ["/ok", "/local", "/deep/relative?a=b/c"] {
            assert_eq!(at(path).await, CheckResult::Success, "{path}");
        }
        let warning = CheckResult::Warning("Probe terminated redirects, Response body: ".into());
        assert_eq!((at("/far").await, at("/unchanged").await), (warning.clone(), warning));
        let missing = CheckResult::Failure("HTTP probe failed with statuscode: 404".into());
        assert_eq!(at("/lost").await, missing);
        let endless = format!("Get \"http://10.244.0.2:{port}/loop\": stopped after 10 redirects");
        assert_eq!(at("/loop").await, CheckResult::Failure(endless));
    }

    #[tokio::test]
    async fn a_hook_succeeds_with_each_status() {
        let port = server("127.0.0.1").await;
        let hook = async |check: Check| {
            run_hook(&runtime(), &SandboxId("p".into()), &ContainerId("c".into()), &check, LIMIT).await
        };
        assert_eq!(hook(Check::Http(probe(port, "/missing"))).await, Ok(()));
        assert!(hook(Check::Http(probe(port, "/loop"))).await.is_err());
        assert!(hook(Check::Http(probe(1, "/ok"))).await.unwrap_err().contains("connection refused"));
    }

    #[tokio::test]
    async fn the_host_of_a_check_is_dialled() {
        // Ports of pods are those of 127.0.0.1.
        let host = "127.0.0.2".to_owned();
        let port = server(&host).await;
        let outside = HttpProbe { host: host.clone(), is_outside: true, ..probe(port, "/local") };
        assert_eq!(checked(&Check::Http(outside)).await, CheckResult::Success);
        assert_eq!(checked(&Check::Tcp { host: Some(host), port }).await, CheckResult::Success);
        assert!(matches!(checked(&Check::Tcp { host: None, port }).await, CheckResult::Failure(_)));
    }
}
