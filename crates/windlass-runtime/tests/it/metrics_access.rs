//! Metrics over HTTPS, for readers with the right to read metrics.

use std::{net::SocketAddr, sync::Arc};

use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube_client::{Api, Client, api::PostParams};
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{ring::default_provider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use windlass_runtime::{Manager, manager::SecureMetrics};
use windlass_test::{TestCluster, eventually, stretched};

use crate::fixture::SOON;

/// Accepts every certificate, like readers of metrics with a self-signed certificate.
#[derive(Debug)]
struct Trusting;

impl ServerCertVerifier for Trusting {
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
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &default_provider().signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &default_provider().signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// Connects with TLS, and offers these protocols.
async fn connect(address: SocketAddr, protocols: &[&str]) -> Result<TlsStream<TcpStream>, String> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusting))
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(address).await.map_err(|e| e.to_string())?;
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|e| e.to_string())
}

/// Sends a GET request for the metrics over HTTPS, and returns the status code and the body.
async fn get(address: SocketAddr, token: Option<&str>) -> Result<(u16, String), String> {
    get_path(address, "/metrics", token).await
}

async fn get_path(address: SocketAddr, path: &str, token: Option<&str>) -> Result<(u16, String), String> {
    let mut stream = connect(address, &[]).await?;
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{token}\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|e| e.to_string())?;
    let mut reply = Vec::new();
    // The server may end the connection without a word of TLS.
    let _ = stream.read_to_end(&mut reply).await;
    let reply = String::from_utf8_lossy(&reply).into_owned();
    let (head, body) = reply.split_once("\r\n\r\n").ok_or_else(|| reply.clone())?;
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(|| head.to_owned())?;
    Ok((code, body.to_owned()))
}

/// Creates a service account and returns a token of the account.
async fn token(client: &Client, name: &str) -> String {
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    let account = serde_json::from_value(json!({ "metadata": { "name": name } })).expect("an account");
    accounts.create(&PostParams::default(), &account).await.expect("created");
    let request = TokenRequest {
        spec: Some(TokenRequestSpec { expiration_seconds: Some(600), ..TokenRequestSpec::default() }),
        ..TokenRequest::default()
    };
    let token = accounts.create_token_request(name, &PostParams::default(), &request).await;
    token.expect("a token").status.and_then(|status| status.token).expect("a token")
}

async fn let_read_metrics(client: &Client, account: &str) {
    let role = json!({
        "metadata": { "name": "metrics-reader" },
        "rules": [{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }],
    });
    let binding = json!({
        "metadata": { "name": "metrics-reader" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "metrics-reader" },
        "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": "default" }],
    });
    let role: ClusterRole = serde_json::from_value(role).expect("a role");
    let binding: ClusterRoleBinding = serde_json::from_value(binding).expect("a binding");
    Api::all(client.clone()).create(&PostParams::default(), &role).await.expect("created");
    Api::all(client.clone()).create(&PostParams::default(), &binding).await.expect("created");
}

async fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    listener.local_addr().expect("an address")
}

#[tokio::test]
async fn metrics_are_for_those_who_may_read_them() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    let address = free_address().await;
    let manager = Manager::new(client.clone()).secure_metrics(SecureMetrics::new(address));
    let rules = manager.permissions().cluster_role();
    assert!(
        rules.iter().any(|rule| rule.resources.iter().flatten().any(|resource| resource == "tokenreviews")),
        "{rules:?}"
    );
    let running = cluster.run_restricted(manager).await;
    let refused = eventually(SOON, || get(address, None)).await;
    assert_eq!(refused, (401, "Unauthorized\n".to_owned()));
    assert_eq!(get(address, Some("nonsense")).await, Ok((401, "Unauthorized\n".to_owned())));

    let not_found = (404, "404 page not found\n".to_owned());
    assert_eq!(get_path(address, "/metrics/other", None).await, Ok(not_found));

    let stranger = token(&client, "stranger").await;
    let denied = "Authorization denied for user system:serviceaccount:default:stranger\n";
    assert_eq!(get(address, Some(&stranger)).await, Ok((403, denied.to_owned())));

    let reader = token(&client, "reader").await;
    let_read_metrics(&client, "reader").await;
    let (code, text) = get(address, Some(&reader)).await.expect("answers");
    assert_eq!(code, 200);
    assert!(text.contains("windlass_build_info"), "{text}");
    running.stop_with_exact_rights().await.expect("a graceful end");
}

#[tokio::test]
async fn metrics_may_be_open_to_all_over_https() {
    let cluster = TestCluster::start().await;
    let address = free_address().await;
    let metrics = SecureMetrics::new(address).without_authorization();
    let running = cluster.run_restricted(Manager::new(cluster.client()).secure_metrics(metrics)).await;
    let (code, _) = eventually(SOON, || get(address, None)).await;
    assert_eq!(code, 200);
    tokio::time::timeout(stretched(SOON), running.stop()).await.expect("in time").expect("a graceful end");
}

#[tokio::test]
async fn metrics_are_served_over_http_2_to_clients_that_choose_it() {
    let cluster = TestCluster::start().await;
    let address = free_address().await;
    let metrics = SecureMetrics::new(address).without_authorization();
    let running = cluster.run_restricted(Manager::new(cluster.client()).secure_metrics(metrics)).await;
    let stream = eventually(SOON, || connect(address, &["h2", "http/1.1"])).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .expect("HTTP/2");
    let connection = tokio::spawn(connection);
    let uri = format!("https://{address}/metrics");
    let request = http::Request::get(uri).body(String::new()).expect("a request");
    let reply = sender.send_request(request).await.expect("a reply");
    assert_eq!(reply.status(), 200);
    connection.abort();
    running.stop().await.expect("a graceful end");
}
