//! Certificates that change while the client runs.

use std::sync::Arc;

use rustls::{RootCertStore, ServerConfig, server::WebPkiClientVerifier};

use windlass_http::{HttpClient, Options, Protocol};

use crate::server::{Certificate, Reply, TestServer, chain, client, exchange, get, soon, write};

#[tokio::test]
async fn a_server_with_another_certificate_is_trusted_when_the_file_of_the_authority_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let (old, new) = (Certificate::new(), Certificate::new());
    let server = TestServer::start(&old, |_, _| Reply::Text("old")).await;
    let address = server.address;
    let mut config = old.config(address);
    config.root_cert_file = Some(write(&folder, "ca.crt", &old.pem));
    let client = client(config);
    assert_eq!(exchange(&client, get("/")).await, "old");

    server.stop().await;
    let tls = new.server_config(&["h2"]);
    let _server = TestServer::serve(tls, address.port(), 100, |_, _| Reply::Text("new")).await;
    // The first request may meet the connection of the server that is gone.
    let errors = [soon(client.send(get("/"))).await.err(), soon(client.send(get("/"))).await.err()];
    let last = errors[1].as_ref().map(|error| chain(error)).unwrap_or_default();
    assert!(last.contains("invalid peer certificate"), "{last}");
    write(&folder, "ca.crt", &new.pem);
    assert_eq!(exchange(&client, get("/")).await, "new");
}

/// Returns the TLS settings of a server that trusts the client certificates of two clients.
fn with_clients(server: &Certificate, clients: [&Certificate; 2]) -> ServerConfig {
    let mut roots = RootCertStore::empty();
    for client in clients {
        roots.add(client.parts().0[0].clone()).expect("a certificate");
    }
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().expect("a verifier");
    let (chain, key) = server.parts();
    let builder = ServerConfig::builder().with_client_cert_verifier(verifier);
    let mut config = builder.with_single_cert(chain, key).expect("a certificate and its key");
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

#[tokio::test]
async fn a_client_certificate_is_read_again_when_its_file_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let (authority, first, second) = (Certificate::new(), Certificate::new(), Certificate::new());
    let tls = with_clients(&authority, [&first, &second]);
    let mut server = TestServer::serve(tls, 0, 100, |_, line| match line {
        "GET /last" => Reply::GoAway,
        _ => Reply::Text("ok"),
    })
    .await;
    let mut config = authority.config(server.address);
    config.auth_info.client_certificate = Some(write(&folder, "tls.crt", &first.pem).display().to_string());
    config.auth_info.client_key = Some(write(&folder, "tls.key", &first.key).display().to_string());
    let client = client(config);
    assert_eq!(exchange(&client, get("/last")).await, "last");
    assert_eq!(server.peer().await, first.parts().0[0].to_vec());

    write(&folder, "tls.crt", &second.pem);
    write(&folder, "tls.key", &second.key);
    assert_eq!(exchange(&client, get("/next")).await, "ok");
    assert_eq!(server.peer().await, second.parts().0[0].to_vec());
}

#[tokio::test]
async fn a_new_client_certificate_is_used_over_http1_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let (authority, first, second) = (Certificate::new(), Certificate::new(), Certificate::new());
    let mut tls = with_clients(&authority, [&first, &second]);
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let mut server = TestServer::serve(tls, 0, 100, |connection, _| match connection {
        1 => Reply::Unauthorized,
        _ => Reply::Text("ok"),
    })
    .await;
    let mut config = authority.config(server.address);
    config.auth_info.client_certificate = Some(write(&folder, "tls.crt", &first.pem).display().to_string());
    config.auth_info.client_key = Some(write(&folder, "tls.key", &first.key).display().to_string());
    let client = HttpClient::new(config, Options::default().protocol(Protocol::Http1)).expect("a client");
    assert_eq!(exchange(&client, get("/a")).await, "");
    assert_eq!(server.peer().await, first.parts().0[0].to_vec());

    write(&folder, "tls.crt", &second.pem);
    write(&folder, "tls.key", &second.key);
    // A refused request has the files read again, in the background.
    soon(async { while exchange(&client, get("/b")).await != "ok" {} }).await;
    assert_eq!(server.peer().await, second.parts().0[0].to_vec());
}
