//! The HTTP check.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, HOST, USER_AGENT};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use super::CheckResult;
use super::check::{HttpProbe, dial_error};
use crate::{Runtime, SandboxId};

/// Returns the URL, for messages.
pub(super) fn url(probe: &HttpProbe) -> String {
    let scheme = if probe.tls { "https" } else { "http" };
    let slash = if probe.path.starts_with('/') { "" } else { "/" };
    format!("{scheme}://{}:{}{slash}{}", probe.host, probe.port, probe.path)
}

/// Sends the request.
pub(super) async fn check(runtime: &dyn Runtime, sandbox: &SandboxId, probe: &HttpProbe) -> CheckResult {
    match status(runtime, sandbox, probe).await {
        Ok(200..=399) => CheckResult::Success,
        Ok(status) => CheckResult::Failure(format!("HTTP probe failed with statuscode: {status}")),
        Err(reason) => CheckResult::Failure(format!("Get \"{}\": {reason}", url(probe))),
    }
}

async fn status(runtime: &dyn Runtime, sandbox: &SandboxId, probe: &HttpProbe) -> Result<u16, String> {
    let stream = runtime
        .connect_from_outside(sandbox, probe.port)
        .await
        .map_err(|error| dial_error(&error, &probe.host, probe.port))?;
    if !probe.tls {
        return exchange(stream, probe).await;
    }
    let name = ServerName::try_from(probe.host.clone())
        .or_else(|_| ServerName::try_from("localhost".to_owned()))
        .map_err(|error| error.to_string())?;
    let connector = TlsConnector::from(Arc::new(configuration()?));
    exchange(connector.connect(name, stream).await.map_err(|error| error.to_string())?, probe).await
}

async fn exchange<S>(stream: S, probe: &HttpProbe) -> Result<u16, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let request = request(probe)?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let answered = async {
        let reply = sender.send_request(request).await.map_err(|error| error.to_string())?;
        Ok::<u16, String>(reply.status().as_u16())
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
