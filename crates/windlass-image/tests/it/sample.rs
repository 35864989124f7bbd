//! Images for tests.

use std::io::Write;

use tar::{EntryType, Header};
use windlass_image::{
    Config, Descriptor, Digest, Image, ImageConfig, Manifest, Platform, Reference, RootFs, Store, media_type,
};

/// A store in a folder that the end of the test removes.
pub(crate) struct Sandbox {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) store: Store,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("store")).unwrap();
        Self { folder, store }
    }

    /// Stores an image with layers that are compressed with gzip.
    pub(crate) fn image(&self, name: &str, layers: &[Layer]) -> Image {
        let layers: Vec<_> =
            layers.iter().map(|layer| (media_type::LAYER_GZIP, layer.gzip(), layer.digest())).collect();
        self.image_of(name, &layers)
    }

    /// Stores an image with layers of a media type, and the digests of the layers without compression.
    pub(crate) fn image_of(&self, name: &str, layers: &[(&str, Vec<u8>, Digest)]) -> Image {
        let described = layers.iter().map(|(media_type, bytes, _)| {
            self.store.put(bytes).unwrap();
            Descriptor::of(media_type, bytes)
        });
        let config = ImageConfig {
            created: None,
            author: None,
            platform: Platform::host(),
            config: Config {
                user: "65532:65532".to_owned(),
                entrypoint: vec!["/manager".to_owned()],
                ..Config::default()
            },
            rootfs: RootFs {
                kind: "layers".to_owned(),
                diff_ids: layers.iter().map(|(_, _, id)| id.clone()).collect(),
            },
            history: Vec::new(),
        };
        let layers = described.collect();
        let config = serde_json::to_vec(&config).unwrap();
        self.store.put(&config).unwrap();
        let manifest =
            serde_json::to_vec(&Manifest::new(Descriptor::of(media_type::CONFIG, &config), layers)).unwrap();
        self.store.put(&manifest).unwrap();
        let reference: Reference = name.parse().unwrap();
        self.store.tag(&reference, &Descriptor::of(media_type::MANIFEST, &manifest)).unwrap();
        self.store.find(&reference).unwrap().unwrap()
    }
}

/// A layer, with headers that no tool for images would write.
#[derive(Default)]
pub(crate) struct Layer {
    bytes: Vec<u8>,
}

impl Layer {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        self.entry(EntryType::Regular, path, "", 0o644, text.as_bytes())
    }

    pub(crate) fn folder(self, path: &str) -> Self {
        self.entry(EntryType::Directory, path, "", 0o755, b"")
    }

    pub(crate) fn link(self, path: &str, target: &str) -> Self {
        self.entry(EntryType::Symlink, path, target, 0o777, b"")
    }

    pub(crate) fn hard_link(self, path: &str, target: &str) -> Self {
        self.entry(EntryType::Link, path, target, 0o644, b"")
    }

    pub(crate) fn entry(self, kind: EntryType, path: &str, target: &str, mode: u32, content: &[u8]) -> Self {
        self.owned(kind, path, target, mode, 0, content)
    }

    pub(crate) fn owned(
        mut self,
        kind: EntryType,
        path: &str,
        target: &str,
        mode: u32,
        user: u64,
        content: &[u8],
    ) -> Self {
        let mut header = Header::new_ustar();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(user);
        header.set_gid(user);
        header.set_mtime(1);
        header.set_size(content.len() as u64);
        header.set_cksum();
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(content);
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self
    }

    pub(crate) fn tar(&self) -> Vec<u8> {
        [self.bytes.as_slice(), &[0; 1024]].concat()
    }

    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.tar())
    }

    pub(crate) fn gzip(&self) -> Vec<u8> {
        gzip(&self.tar())
    }
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
