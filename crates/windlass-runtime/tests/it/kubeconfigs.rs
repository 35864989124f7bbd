//! Kubeconfigs of all sorts, and servers that go away, over TLS.

use std::{
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube_client::Client;
use kube_core::ApiResource;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use windlass_runtime::{
    client::{ClientBuilder, ConfigSource, Protocol},
    informer::{CacheOptions, SharedInformer, SharedInformerFactory},
    kind,
};
use windlass_test::{Identity, Listen, RunningListener, ServerCertificate, TestCluster, eventually};

use crate::fixture::{SOON, create_config_map, expect_eq};

/// The token that the server knows.
const TOKEN: &str = "token-of-the-operator";

/// A server behind TLS with one certificate, which clients trust, and a folder for kubeconfigs.
struct Setting {
    cluster: TestCluster,
    certificate: String,
    key: String,
    folder: TempDir,
}

impl Setting {
    async fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), "kubernetes".to_owned()]);
        let made = made.expect("a certificate");
        Self {
            cluster: TestCluster::start().await,
            certificate: made.cert.pem(),
            key: made.signing_key.serialize_pem(),
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    async fn listen(&self, port: u16) -> RunningListener {
        let certificate = ServerCertificate::from_pem(self.certificate.as_bytes(), self.key.as_bytes())
            .expect("a certificate");
        let listen = Listen::on(SocketAddr::from(([127, 0, 0, 1], port)));
        let listen = listen.certificate(certificate).with_token(TOKEN, Identity::admin());
        self.cluster.server().listen(listen).await.expect("it listens")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).expect("written");
        self.path(name)
    }

    /// Writes a kubeconfig of a server, with the authority in the file `ca.crt` and with additional fields of
    /// the cluster and the user.
    fn kubeconfig(&self, url: &str, cluster: Value, user: Value) -> PathBuf {
        if !self.path("ca.crt").exists() {
            self.write("ca.crt", &self.certificate);
        }
        let mut fields = json!({ "server": url, "certificate-authority": self.path("ca.crt") });
        let (Value::Object(fields_of_cluster), Value::Object(more)) = (&mut fields, cluster) else {
            panic!("an object")
        };
        fields_of_cluster.extend(more);
        let file = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{ "name": "c", "cluster": fields }],
            "users": [{ "name": "c", "user": user }],
            "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "c", "namespace": "default" } }],
        });
        self.write("kubeconfig", &file.to_string())
    }

    /// Writes a program that answers as a credential plugin does, with the token in the file `token`.
    fn plugin(&self) -> Value {
        let script = format!(
            "#!/bin/sh\nprintf '{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\
             \"status\":{{\"token\":\"%s\",\"expirationTimestamp\":\"2020-01-01T00:00:00Z\"}}}}' \"$(cat '{}')\"\n",
            self.path("token").display()
        );
        let path = self.write("plugin", &script);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
        json!({ "exec": { "apiVersion": "client.authentication.k8s.io/v1", "command": path, "interactiveMode": "Never" } })
    }
}

fn token() -> Value {
    json!({ "token": TOKEN })
}

async fn client(kubeconfig: &Path) -> Client {
    let source = ConfigSource { kubeconfig: Some(kubeconfig.to_owned()), ..ConfigSource::default() };
    ClientBuilder::new(source.load().await.expect("a configuration")).build().expect("a client")
}

/// Starts the watch of ConfigMaps.
async fn watch(kubeconfig: &Path) -> (SharedInformerFactory, SharedInformer<ConfigMap>) {
    let factory = SharedInformerFactory::new(client(kubeconfig).await, Duration::ZERO);
    let informer = factory.informer(kind::<ConfigMap>(), CacheOptions::default()).expect("an informer");
    factory.start();
    (factory, informer)
}

/// Waits until the watch fails, and returns why.
async fn failure(informer: &SharedInformer<ConfigMap>) -> String {
    eventually(SOON, || async { informer.last_failure().ok_or("it has not failed") }).await
}

async fn sees(informer: &SharedInformer<ConfigMap>, name: &str) {
    let found = || async { expect_eq(informer.store().get_by_name(Some("default"), name).is_some(), true) };
    eventually(Duration::from_secs(60), found).await;
}

#[tokio::test]
async fn a_server_that_the_authority_did_not_sign_is_refused_with_the_reason() {
    let setting = Setting::new().await;
    let listening = setting.listen(0).await;
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    setting.write("ca.crt", &other.cert.pem());
    let (_factory, informer) = watch(&setting.kubeconfig(&listening.url(), json!({}), token())).await;
    let reason = failure(&informer).await;
    assert!(reason.contains("invalid peer certificate: "), "{reason}");
    assert!(!reason.contains(TOKEN), "{reason}");
}

#[tokio::test]
async fn the_certificate_is_checked_against_tls_server_name() {
    let setting = Setting::new().await;
    let listening = setting.listen(0).await;
    create_config_map(&setting.cluster.client(), "a").await;
    let named =
        |name: &str| setting.kubeconfig(&listening.url(), json!({ "tls-server-name": name }), token());
    let (_factory, informer) = watch(&named("kubernetes")).await;
    sees(&informer, "a").await;
    let (_factory, informer) = watch(&named("elsewhere")).await;
    let reason = failure(&informer).await;
    assert!(reason.contains("certificate not valid for name \"elsewhere\""), "{reason}");
}

#[tokio::test]
async fn a_credential_plugin_is_asked_again_when_its_token_has_expired() {
    let setting = Setting::new().await;
    let listening = setting.listen(0).await;
    create_config_map(&setting.cluster.client(), "a").await;
    setting.write("token", "expired");
    let (_factory, informer) =
        watch(&setting.kubeconfig(&listening.url(), json!({}), setting.plugin())).await;
    let reason = failure(&informer).await;
    assert!(reason.contains("Unauthorized"), "{reason}");
    setting.write("token", TOKEN);
    sees(&informer, "a").await;
}

/// The server refuses the old token, so the client does not wait for the token to age.
#[tokio::test]
async fn a_token_file_is_read_again_when_its_token_was_refused() {
    let setting = Setting::new().await;
    let listening = setting.listen(0).await;
    create_config_map(&setting.cluster.client(), "a").await;
    let file = setting.write("token", "expired");
    let user = json!({ "tokenFile": file });
    let (_factory, informer) = watch(&setting.kubeconfig(&listening.url(), json!({}), user)).await;
    let reason = failure(&informer).await;
    assert!(reason.contains("Unauthorized"), "{reason}");
    setting.write("token", TOKEN);
    let found = || async { expect_eq(informer.store().get_by_name(Some("default"), "a").is_some(), true) };
    eventually(SOON, found).await;
}

#[tokio::test]
async fn a_credential_plugin_that_fails_is_named() {
    let setting = Setting::new().await;
    let listening = setting.listen(0).await;
    let exec = json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "/nonexistent/plugin", "interactiveMode": "Never",
    } });
    let path = setting.kubeconfig(&listening.url(), json!({}), exec);
    let source = ConfigSource { kubeconfig: Some(path), ..ConfigSource::default() };
    let built = match source.load().await {
        Ok(config) => ClientBuilder::new(config).build().map(drop),
        Err(error) => Err(error),
    };
    let error = built.expect_err("no such program").to_string();
    assert!(
        error.starts_with("the credential plugin \"/nonexistent/plugin\" of the kubeconfig: "),
        "{error}"
    );
}

/// Forwards connections like an HTTP proxy (CONNECT), and counts the connections.
async fn proxy() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("it listens");
    let (address, tunnels) = (listener.local_addr().expect("an address"), Arc::new(AtomicUsize::new(0)));
    let counted = tunnels.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let counted = counted.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.expect("a head"));
                }
                let head = String::from_utf8(head).expect("text");
                let target = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next());
                let mut server = TcpStream::connect(target.expect("a CONNECT")).await.expect("a server");
                counted.fetch_add(1, Ordering::SeqCst);
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.expect("written");
                let _ = copy_bidirectional(&mut stream, &mut server).await;
            });
        }
    });
    (address, tunnels)
}

#[tokio::test]
async fn requests_go_through_the_proxy_of_the_kubeconfig() {
    let setting = Setting::new().await;
    let listening = setting.listen(0).await;
    create_config_map(&setting.cluster.client(), "a").await;
    let (address, tunnels) = proxy().await;
    let through = json!({ "proxy-url": format!("http://{address}") });
    let (_factory, informer) = watch(&setting.kubeconfig(&listening.url(), through, token())).await;
    sees(&informer, "a").await;
    assert!(tunnels.load(Ordering::SeqCst) > 0);
}

/// Watches three kinds and creates 40 objects at once. Returns the number of connections.
async fn connections(protocol: Protocol) -> usize {
    let setting = Setting::new().await;
    let listening = setting.listen(0).await;
    let (address, tunnels) = proxy().await;
    let through = json!({ "proxy-url": format!("http://{address}") });
    let kubeconfig = setting.kubeconfig(&listening.url(), through, token());
    let source = ConfigSource { kubeconfig: Some(kubeconfig), ..ConfigSource::default() };
    let config = source.load().await.expect("a configuration");
    let client = ClientBuilder::new(config).protocol(protocol).build().expect("a client");
    let factory = SharedInformerFactory::new(client.clone(), Duration::ZERO);
    let kinds = [
        ApiResource::erase::<ConfigMap>(&()),
        ApiResource::erase::<Secret>(&()),
        ApiResource::erase::<Service>(&()),
    ];
    let informers = kinds.map(|kind| factory.informer(&kind, CacheOptions::default()).expect("an informer"));
    factory.start();
    let names: Vec<String> = (0..40).map(|n| format!("m{n}")).collect();
    futures::future::join_all(names.iter().map(|name| create_config_map(&client, name))).await;
    for name in &names {
        sees(&informers[0].read_as(), name).await;
    }
    eventually(SOON, || async { expect_eq(informers.iter().all(SharedInformer::has_synced), true) }).await;
    tunnels.load(Ordering::SeqCst)
}

#[tokio::test]
async fn requests_share_a_connection_and_watches_share_another() {
    assert_eq!(connections(Protocol::Any).await, 2);
    assert!(connections(Protocol::Http1).await > 2, "a connection for each watch and each request");
}

#[tokio::test]
async fn a_server_that_was_gone_is_followed_again() {
    let setting = Setting::new().await;
    let listening = setting.listen(0).await;
    let port = listening.local_addr().port();
    let (_factory, informer) = watch(&setting.kubeconfig(&listening.url(), json!({}), token())).await;
    create_config_map(&setting.cluster.client(), "before").await;
    sees(&informer, "before").await;

    listening.shutdown().await;
    eventually(SOON, || async {
        let reason = informer.last_failure().unwrap_or_default();
        if reason.contains("Connection refused") { Ok(()) } else { Err(reason) }
    })
    .await;
    create_config_map(&setting.cluster.client(), "meanwhile").await;
    let _listening = setting.listen(port).await;
    sees(&informer, "meanwhile").await;
    assert_eq!(informer.last_failure(), None, "a failure that is over is forgotten");
}
