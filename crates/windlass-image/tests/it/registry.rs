//! Pushes and pulls, against the registry of this crate and against registries that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use windlass_image::{
    Credentials, Error, Login, NoProgress, Platform, Reference, Registry, RegistryOptions, RegistryServer,
    Store,
};

use crate::sample::{Layer, Sandbox};

pub(crate) fn options() -> RegistryOptions {
    let mut options = RegistryOptions::default();
    options.back_off = Duration::from_millis(1);
    options.timeout = Duration::from_secs(20);
    options
}

pub(crate) fn client() -> Registry {
    Registry::new(options()).unwrap()
}

/// Starts a registry on a store of its own. Returns its address.
async fn registry(sandbox: &Sandbox) -> String {
    let store = Store::open(sandbox.folder.path().join("registry")).unwrap();
    let server = RegistryServer::bind(store, ([127, 0, 0, 1], 0).into()).await.unwrap();
    let address = server.address().to_string();
    tokio::spawn(server.run(std::future::pending()));
    address
}

/// Answers each request, by its number and its head. Returns the address.
async fn stub(answer: impl Fn(usize, &str) -> String + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (answer, count) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (answer, count) = (Arc::clone(&answer), Arc::clone(&count));
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    // TLS does not end with an empty line.
                    if head.first().is_some_and(|byte| *byte == 0x16) {
                        return;
                    }
                    match stream.read_u8().await {
                        Ok(byte) => head.push(byte),
                        Err(_) => return,
                    }
                }
                let text = answer(count.fetch_add(1, Ordering::SeqCst), &String::from_utf8_lossy(&head));
                let _ = stream.write_all(text.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    address
}

fn reply(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pushed_image_is_pulled_with_the_same_digest() {
    let sandbox = Sandbox::new();
    let registry = registry(&sandbox).await;
    let built = sandbox.image("web:v1", &[Layer::new().file("a", "1"), Layer::new().file("b", "2")]);
    let local: Reference = "web:v1".parse().unwrap();
    let target: Reference = format!("{registry}/team/web:v1").parse().unwrap();
    let client = client();
    assert_eq!(client.digest(&target).await.unwrap(), None);
    let pushed = client.push(&sandbox.store, &local, &target, &NoProgress).await.unwrap();
    assert_eq!((&pushed.digest, pushed.transferred, pushed.present), (built.digest(), 3, 0));
    let again = client.push(&sandbox.store, &local, &target, &NoProgress).await.unwrap();
    assert_eq!((again.transferred, again.present), (0, 3));
    assert_eq!(client.digest(&target).await.unwrap().as_ref(), Some(built.digest()));

    let other = Store::open(sandbox.folder.path().join("other")).unwrap();
    let pulled = client.pull(&other, &target, &Platform::host(), &NoProgress).await.unwrap();
    assert_eq!((pulled.digest(), pulled.id()), (built.digest(), built.id()));
    assert_eq!(other.find(&target).unwrap().unwrap().id(), built.id());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_blob_is_sent_in_parts() {
    let sandbox = Sandbox::new();
    let registry = registry(&sandbox).await;
    let noise: Vec<u8> =
        (0..20_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let layer = Layer::new().entry(tar::EntryType::Regular, "noise", "", 0o644, &noise);
    let layers = [(windlass_image::media_type::LAYER, layer.tar(), layer.digest())];
    let built = sandbox.image_of("large", &layers);
    let target: Reference = format!("{registry}/large").parse().unwrap();
    client().push(&sandbox.store, &"large".parse().unwrap(), &target, &NoProgress).await.unwrap();
    let other = Store::open(sandbox.folder.path().join("other")).unwrap();
    let pulled = client().pull(&other, &target, &Platform::host(), &NoProgress).await.unwrap();
    assert_eq!(pulled.id(), built.id());
}

#[tokio::test]
async fn a_registry_that_fails_is_asked_again() {
    let registry = stub(|number, _| match number {
        0 => reply("200 OK", "", "{}"),
        3 => reply("200 OK", &format!("docker-content-digest: sha256:{}\r\n", "a".repeat(64)), ""),
        1 => reply("503 Service Unavailable", "", ""),
        2 => reply("429 Too Many Requests", "retry-after: 0\r\n", ""),
        _ => reply("404 Not Found", "", ""),
    })
    .await;
    let digest = client().digest(&format!("{registry}/web").parse().unwrap()).await.unwrap();
    assert!(digest.is_some());
}

#[tokio::test]
async fn an_error_has_the_words_of_the_registry_and_no_password() {
    let registry = stub(|_, head| {
        if head.contains(" /v2/ ") {
            reply("200 OK", "", "{}")
        } else {
            reply(
                "401 Unauthorized",
                "www-authenticate: Basic realm=\"x\"\r\n",
                r#"{"errors":[{"code":"UNAUTHORIZED","message":"authentication required","detail":null}]}"#,
            )
        }
    })
    .await;
    let mut options = options();
    options.credentials = Credentials::of([Login::password("me", "hunter2")]);
    let sandbox = Sandbox::new();
    let reference: Reference = format!("{registry}/web").parse().unwrap();
    let pulled = Registry::new(options)
        .unwrap()
        .pull(&sandbox.store, &reference, &Platform::host(), &NoProgress)
        .await;
    let Err(Error::Unauthorized(message)) = pulled else { panic!("{pulled:?}") };
    assert!(
        message.contains("unauthorized: authentication required") && !message.contains("hunter2"),
        "{message}"
    );
}

#[tokio::test]
async fn a_token_is_fetched_with_the_password_and_used() {
    let registry = stub(move |_, head| {
        let host = head.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
        if head.contains(" /v2/ ") {
            reply("200 OK", "", "{}")
        } else if head.contains("/token?service=s&scope=repository%3Aweb%3Apull ") {
            assert!(head.contains("authorization: Basic bWU6cHc="), "{head}");
            reply("200 OK", "", r#"{"token":"secret-token"}"#)
        } else if head.contains("authorization: Bearer secret-token") {
            reply("200 OK", &format!("docker-content-digest: sha256:{}\r\n", "a".repeat(64)), "")
        } else {
            let challenge =
                format!("www-authenticate: Bearer realm=\"http://{host}/token\",service=\"s\"\r\n");
            reply("401 Unauthorized", &challenge, "")
        }
    })
    .await;
    let mut options = options();
    options.credentials = Credentials::of([Login::password("me", "pw")]);
    let digest =
        Registry::new(options).unwrap().digest(&format!("{registry}/web").parse().unwrap()).await.unwrap();
    assert_eq!(digest.unwrap().hex(), "a".repeat(64));
}

#[tokio::test]
async fn a_blob_with_other_bytes_leaves_nothing_behind() {
    let sandbox = Sandbox::new();
    let built = sandbox.image("web", &[Layer::new().file("a", "1")]);
    let manifest = String::from_utf8(sandbox.store.read(built.digest()).unwrap()).unwrap();
    let sizes = [built.manifest().config.size, built.layers()[0].size];
    let config = built.id().to_string();
    let registry = stub(move |_, head| {
        if head.contains(" /v2/ ") {
            reply("200 OK", "", "{}")
        } else if head.contains("/manifests/") {
            reply("200 OK", "", &manifest)
        } else {
            let size = if head.contains(&config) { sizes[0] } else { sizes[1] };
            reply("200 OK", "", &"x".repeat(size as usize))
        }
    })
    .await;
    let other = Store::open(sandbox.folder.path().join("other")).unwrap();
    let reference: Reference = format!("{registry}/web").parse().unwrap();
    let pulled = client().pull(&other, &reference, &Platform::host(), &NoProgress).await;
    assert!(matches!(pulled, Err(Error::WrongDigest { .. })), "{pulled:?}");
    assert!(other.list().unwrap().is_empty());
    for folder in ["blobs/sha256", "uploads"] {
        assert_eq!(std::fs::read_dir(other.folder().join(folder)).unwrap().count(), 0, "{folder}");
    }
}

#[tokio::test]
async fn a_registry_without_a_listener_is_unavailable() {
    let pulled = client().digest(&"127.0.0.1:1/web".parse().unwrap()).await;
    assert!(matches!(pulled, Err(Error::Unavailable(_))), "{pulled:?}");
}

#[tokio::test]
async fn a_registry_for_reading_serves_images_and_takes_none() {
    let sandbox = Sandbox::new();
    let image = sandbox.image("localhost/app:1", &[Layer::new().file("a", "b")]);
    let server = RegistryServer::bind(sandbox.store.clone(), ([127, 0, 0, 1], 0).into()).await.unwrap();
    let server = server.read_only();
    let address = server.address();
    tokio::spawn(server.run(std::future::pending()));
    let name: Reference = format!("{address}/any@{}", image.digest()).parse().unwrap();
    let pulled = Store::open(sandbox.folder.path().join("pulled")).unwrap();
    let found = client().pull(&pulled, &name, &Platform::host(), &NoProgress).await.unwrap();
    assert_eq!(found.digest(), image.digest());
    let other = Sandbox::new();
    let name: Reference = format!("{address}/other:1").parse().unwrap();
    other.image(&name.to_string(), &[Layer::new().file("c", "d")]);
    assert!(client().push(&other.store, &name, &name, &NoProgress).await.is_err());
    assert!(sandbox.store.find(&name).unwrap().is_none());
}
