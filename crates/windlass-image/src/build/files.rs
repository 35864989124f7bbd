//! The files of a layer.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::GzBuilder;
use tar::{Builder, EntryType, Header};

use crate::{BlobWriter, Descriptor, Digest, Error, Hasher, Result, Store, media_type};

/// The level of gzip and of zstd.
const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 10;

/// The longest path of a file, in bytes: that of a header without extensions.
const LONGEST_PATH: usize = 100;

/// The compression of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// gzip, which all nodes read.
    #[default]
    Gzip,
    /// zstd, which containerd 1.5 and CRI-O 1.21 read: smaller, and faster to unpack.
    Zstd,
}

#[derive(Clone, Debug)]
enum Content {
    Folder,
    Bytes(Vec<u8>),
    File(PathBuf),
}

/// The files of a layer, by their paths. All files belong to user 0 and group 0. Folders above a file are added with mode 0755.
#[derive(Clone, Debug, Default)]
pub struct Files {
    entries: BTreeMap<String, (u32, Content)>,
}

impl Files {
    /// Makes an empty set of files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a folder with a mode.
    pub fn folder(&mut self, path: &str, mode: u32) {
        self.add(path, mode, Content::Folder);
    }

    /// Adds a file with a mode and bytes.
    pub fn bytes(&mut self, path: &str, mode: u32, bytes: impl Into<Vec<u8>>) {
        self.add(path, mode, Content::Bytes(bytes.into()));
    }

    /// Adds a copy of a file of this machine. Links are followed.
    pub fn copy(&mut self, path: &str, mode: u32, from: &Path) {
        self.add(path, mode, Content::File(from.to_owned()));
    }

    fn add(&mut self, path: &str, mode: u32, content: Content) {
        let path = path.trim_matches('/');
        for (index, _) in path.match_indices('/') {
            self.entries.entry(path[..index].to_owned()).or_insert((0o755, Content::Folder));
        }
        self.entries.insert(path.to_owned(), (mode, content));
    }

    /// Writes the layer to a store. Returns the layer, and the layer's digest without compression.
    pub(super) fn write(
        &self,
        store: &Store,
        time: u64,
        compression: Compression,
    ) -> Result<(Descriptor, Digest)> {
        let cannot = |error: io::Error| Error::storage("write a layer to", store.folder(), error);
        let mut blob = store.writer()?;
        let (diff_id, media_type) = match compression {
            Compression::Gzip => {
                // Without a name and a time, and for an unknown system, so that the bytes are the same on each machine.
                let gzip = GzBuilder::new().mtime(0).operating_system(255);
                let encoder = gzip.write(&mut blob, flate2::Compression::new(GZIP_LEVEL));
                let (diff_id, encoder) = self.tar(encoder, time)?;
                encoder.finish().map_err(cannot)?;
                (diff_id, media_type::LAYER_GZIP)
            }
            Compression::Zstd => {
                let encoder = zstd::stream::write::Encoder::new(&mut blob, ZSTD_LEVEL).map_err(cannot)?;
                let (diff_id, encoder) = self.tar(encoder, time)?;
                encoder.finish().map_err(cannot)?;
                (diff_id, media_type::LAYER_ZSTD)
            }
        };
        described(blob, media_type).map(|layer| (layer, diff_id))
    }

    /// Writes an archive. Returns the archive's digest and the writer.
    fn tar<W: Write>(&self, writer: W, time: u64) -> Result<(Digest, W)> {
        let mut archive = Builder::new(Hashing { writer, hasher: Hasher::new() });
        for (path, (mode, content)) in &self.entries {
            append(&mut archive, path, *mode, content, time)?;
        }
        let hashing =
            archive.into_inner().map_err(|error| Error::storage("write", Path::new("a layer"), error))?;
        Ok((hashing.hasher.finish(), hashing.writer))
    }
}

fn described(blob: BlobWriter, media_type: &str) -> Result<Descriptor> {
    let size = blob.size();
    Ok(Descriptor::new(media_type, blob.commit(None)?, size))
}

fn append<W: Write>(
    archive: &mut Builder<W>,
    path: &str,
    mode: u32,
    content: &Content,
    time: u64,
) -> Result<()> {
    let cannot = |error| Error::storage("add to a layer:", Path::new(path), error);
    let name = if matches!(content, Content::Folder) { format!("{path}/") } else { path.to_owned() };
    if name.len() > LONGEST_PATH {
        return Err(Error::Invalid(format!("the path {path} is longer than {LONGEST_PATH} bytes")));
    }
    let mut header = Header::new_ustar();
    header.set_path(&name).map_err(cannot)?;
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(time);
    let (kind, size): (_, u64) = match content {
        Content::Folder => (EntryType::Directory, 0),
        Content::Bytes(bytes) => (EntryType::Regular, bytes.len() as u64),
        Content::File(from) => {
            let metadata = std::fs::metadata(from).map_err(|error| Error::storage("read", from, error))?;
            (EntryType::Regular, metadata.len())
        }
    };
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_cksum();
    match content {
        Content::Folder => archive.append(&header, io::empty()),
        Content::Bytes(bytes) => archive.append(&header, bytes.as_slice()),
        Content::File(from) => {
            let file = File::open(from).map_err(|error| Error::storage("open", from, error))?;
            // A file that grows meanwhile must not spoil the archive.
            archive.append(&header, file.take(size))
        }
    }
    .map_err(cannot)
}

struct Hashing<W> {
    writer: W,
    hasher: Hasher,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
