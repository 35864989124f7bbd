//! A registry with one image, which answers as a test says.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tar::{EntryType, Header};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use windlass_image::{
    Config, Descriptor, Digest, ImageConfig, Manifest, Platform, RegistryOptions, RootFs, Store, media_type,
};
use windlass_node::StoreImages;

/// How the registry answers.
#[derive(Clone)]
pub(crate) enum Fault {
    None,
    /// All requests have this status line, these headers and this body.
    All(&'static str, &'static str, &'static str),
    /// Blobs have other bytes of the same length.
    OtherBytes,
    /// The connection ends within each blob.
    Cut,
}

/// The parts of an image, by their path below the repository.
#[derive(Clone, Default)]
pub(crate) struct Parts {
    pub(crate) manifest: Vec<u8>,
    pub(crate) media_type: String,
    pub(crate) blobs: HashMap<String, Vec<u8>>,
}

impl Parts {
    /// Makes an image of layers without compression.
    pub(crate) fn of(layers: &[Vec<u8>]) -> Self {
        let mut parts = Self { media_type: media_type::MANIFEST.to_owned(), ..Self::default() };
        let described = layers.iter().map(|bytes| parts.blob(media_type::LAYER, bytes)).collect();
        let config = ImageConfig {
            created: None,
            author: None,
            platform: Platform::host(),
            config: Config { entrypoint: vec!["/program".to_owned()], ..Config::default() },
            rootfs: RootFs {
                kind: "layers".to_owned(),
                diff_ids: layers.iter().map(|bytes| Digest::of(bytes)).collect(),
            },
            history: Vec::new(),
        };
        let config = parts.blob(media_type::CONFIG, &serde_json::to_vec(&config).unwrap());
        parts.manifest = serde_json::to_vec(&Manifest::new(config, described)).unwrap();
        parts
    }

    fn blob(&mut self, media_type: &str, bytes: &[u8]) -> Descriptor {
        self.blobs.insert(Digest::of(bytes).to_string(), bytes.to_vec());
        Descriptor::of(media_type, bytes)
    }
}

/// Returns a layer with entries: kind, path, target of a link, content.
pub(crate) fn layer(entries: &[(EntryType, &str, &str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, path, target, content) in entries {
        let mut header = Header::new_ustar();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o6755);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(1);
        header.set_size(content.len() as u64);
        header.set_cksum();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

/// A registry that serves `app:v1`.
pub(crate) struct Stub {
    pub(crate) reference: String,
    pub(crate) state: Arc<Mutex<(Parts, Fault)>>,
}

impl Stub {
    pub(crate) async fn start(parts: Parts) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let reference = format!("{}/app:v1", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new((parts, Fault::None)));
        let served = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&served)));
            }
        });
        Self { reference, state }
    }

    pub(crate) fn set(&self, fault: Fault) {
        self.state.lock().unwrap().1 = fault;
    }
}

async fn answer(mut stream: TcpStream, state: Arc<Mutex<(Parts, Fault)>>) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
        // TLS does not end with an empty line.
        if head[0] == 0x16 {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let (parts, fault) = state.lock().unwrap().clone();
    let (status, headers, body) = content(&head, &parts, &fault);
    let length = body.len();
    let text = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n");
    stream.write_all(text.as_bytes()).await.ok()?;
    let sent = if matches!(fault, Fault::Cut) && head.contains("/blobs/") { length / 2 } else { length };
    stream.write_all(&body[..sent]).await.ok()?;
    stream.shutdown().await.ok()
}

fn content(head: &str, parts: &Parts, fault: &Fault) -> (String, String, Vec<u8>) {
    let path = head.split(' ').nth(1).unwrap_or_default();
    let blob = path.rsplit_once("/blobs/").and_then(|(_, digest)| parts.blobs.get(digest));
    match (fault, blob) {
        (Fault::All(status, headers, body), _) => {
            ((*status).to_owned(), (*headers).to_owned(), body.as_bytes().to_vec())
        }
        (Fault::OtherBytes, Some(bytes)) => ("200 OK".to_owned(), String::new(), vec![b'?'; bytes.len()]),
        (_, Some(bytes)) => ("200 OK".to_owned(), String::new(), bytes.clone()),
        _ if path.ends_with("/manifests/v1") => {
            let headers = format!("content-type: {}\r\n", parts.media_type);
            ("200 OK".to_owned(), headers, parts.manifest.clone())
        }
        _ => ("404 Not Found".to_owned(), String::new(), Vec::new()),
    }
}

/// Returns the images of a store and of registries that fail soon.
pub(crate) fn images(store: &Store) -> StoreImages {
    let mut options = RegistryOptions::default();
    options.back_off = Duration::from_millis(1);
    options.timeout = Duration::from_secs(20);
    StoreImages::new(store.clone(), options, Vec::new())
}
