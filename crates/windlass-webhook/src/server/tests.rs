use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use rcgen::{CertificateParams, Issuer, KeyPair};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use serde_json::Value;
use tokio::{net::TcpStream, sync::oneshot};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{CertificateSource, WebhookListener, WebhookServer};
use crate::{AdmissionContext, AdmissionDenial, Webhooks, certificates::CertificateFiles};

/// An authority, and a certificate for `localhost` with the key.
struct Certificates {
    authority: String,
    chain: String,
    key: String,
}

fn certificates() -> Certificates {
    let (key, own) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut params = CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    Certificates {
        authority,
        chain: params.signed_by(&own, &issuer).unwrap().pem(),
        key: own.serialize_pem(),
    }
}

async fn default(config: ConfigMap, _: AdmissionContext) -> Result<ConfigMap, AdmissionDenial> {
    Ok(config)
}

struct Setting {
    folder: tempfile::TempDir,
    certificates: Certificates,
}

impl Setting {
    fn new() -> Self {
        let (folder, certificates) = (tempfile::tempdir().unwrap(), certificates());
        std::fs::write(folder.path().join("tls.crt"), &certificates.chain).unwrap();
        std::fs::write(folder.path().join("tls.key"), &certificates.key).unwrap();
        std::fs::write(folder.path().join("ca.crt"), &certificates.authority).unwrap();
        Self { folder, certificates }
    }

    fn server(&self) -> WebhookServer {
        let files = CertificateFiles::in_folder(self.folder.path()).interval(Duration::from_millis(10));
        let webhooks = Webhooks::new().defaulter::<ConfigMap>(default);
        WebhookServer::new(webhooks).host([127, 0, 0, 1].into()).port(0).certificate_files(files)
    }

    async fn connect(
        &self,
        port: u16,
        alpn: &[u8],
        as_client: bool,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.certificates.authority.as_bytes()).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = if as_client {
            let chain = CertificateDer::from_pem_slice(self.certificates.chain.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(self.certificates.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![chain], key).unwrap()
        } else {
            builder.with_no_client_auth()
        };
        config.alpn_protocols = vec![alpn.to_vec()];
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
    }
}

/// Serves in the background, once the certificate is there.
async fn serve(listener: WebhookListener) -> (u16, oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
    let port = listener.local_address().port();
    let CertificateSource::Files(files) = listener.certificate_source().clone() else { panic!("files") };
    let (watch, store) = (listener.watch_files(files), listener.certificates().clone());
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        tokio::select! {
            biased;
            () = listener.serve(async { drop(stopped.await) }) => {}
            () = watch => {}
        }
    });
    while store.get().is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    (port, stop, task)
}

async fn post(stream: TlsStream<TcpStream>, is_http2: bool, length: Option<u64>) -> (u16, Bytes) {
    let mut request = http::Request::post("https://localhost/mutate--v1-configmap?timeout=10s");
    request = request.header("content-type", "application/json").header("host", "localhost");
    if let Some(length) = length {
        request = request.header("content-length", length);
    }
    let request = request.body(Full::new(Bytes::from_static(b"{}"))).unwrap();
    let io = TokioIo::new(stream);
    let response = if is_http2 {
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    } else {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    };
    let code = response.status().as_u16();
    (code, response.into_body().collect().await.unwrap().to_bytes())
}

#[tokio::test]
async fn a_server_speaks_both_versions_of_http_and_stops() {
    let setting = Setting::new();
    let listener = setting.server().bind().await.unwrap();
    let check = listener.started_check();
    let now = Timestamp::now();
    assert_eq!(check(now).unwrap_err(), "webhook server has not been started yet");
    let (port, stop, task) = serve(listener).await;
    assert_eq!(check(now), Ok(()));
    let later = "9999-01-01T00:00:00Z".parse().unwrap();
    assert!(check(later).unwrap_err().starts_with("the certificate of the webhook server expired"));
    for alpn in ["h2", "http/1.1"] {
        let stream = setting.connect(port, alpn.as_bytes(), false).await.unwrap();
        let (code, body) = post(stream, alpn == "h2", None).await;
        let reply: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((code, &reply["response"]["status"]["code"]), (200, &400.into()), "{alpn}");
    }
    drop(stop);
    task.await.unwrap();
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
}

#[tokio::test]
async fn http2_can_be_turned_off() {
    let setting = Setting::new();
    let (port, _stop, _task) = serve(setting.server().http2(false).bind().await.unwrap()).await;
    assert!(setting.connect(port, b"h2", false).await.is_err());
    let stream = setting.connect(port, b"http/1.1", false).await.unwrap();
    assert_eq!(post(stream, false, None).await.0, 200);
}

#[tokio::test]
async fn a_body_that_says_it_is_too_large_is_not_received() {
    let setting = Setting::new();
    let (port, _stop, _task) = serve(setting.server().bind().await.unwrap()).await;
    let mut stream = setting.connect(port, b"http/1.1", false).await.unwrap();
    let head = "POST /mutate--v1-configmap HTTP/1.1\r\nhost: localhost\r\ncontent-length: 999999999\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut stream, head.as_bytes()).await.unwrap();
    let mut reply = vec![0; 64];
    tokio::io::AsyncReadExt::read_exact(&mut stream, &mut reply).await.unwrap();
    assert!(reply.starts_with(b"HTTP/1.1 200 OK"), "{}", String::from_utf8_lossy(&reply));
}

#[tokio::test]
async fn clients_without_a_certificate_are_refused_if_an_authority_is_set() {
    let setting = Setting::new();
    let (port, _stop, _task) = serve(setting.server().client_ca("ca.crt").bind().await.unwrap()).await;
    let stream = setting.connect(port, b"http/1.1", true).await.unwrap();
    assert_eq!(post(stream, false, None).await.0, 200);
    // In TLS 1.3, a client gets the refusal only with the first read.
    let refused = match setting.connect(port, b"http/1.1", false).await {
        Ok(mut stream) => tokio::io::AsyncReadExt::read(&mut stream, &mut [0]).await.is_err(),
        Err(_) => true,
    };
    assert!(refused);
}

#[tokio::test]
async fn what_prevents_the_start_is_named() {
    let setting = Setting::new();
    let error = setting.server().client_ca("other.crt").bind().await.unwrap_err().to_string();
    assert!(error.starts_with("cannot read the client CA") && error.contains("other.crt"), "{error}");
    let listener = setting.server().bind().await.unwrap();
    let port = listener.local_address().port();
    let error = setting.server().port(port).bind().await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot serve webhooks on 127.0.0.1:{port}: ")), "{error}");
}
