//! Images as files: an archive for other tools, and a folder.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use serde_json::json;
use tar::{Builder, EntryType, Header};

use crate::{
    Descriptor, Digest, Error, Image, Index, Manifest, Platform, Reference, Result, Store, media_type,
};

/// The name of an image in an OCI layout.
const NAME: &str = "org.opencontainers.image.ref.name";

/// The name under which containerd imports an image.
const CONTAINERD_NAME: &str = "io.containerd.image.name";

/// Writes an image as an archive that is an OCI layout and Docker's archive at once: `docker load`, `podman load`, `ctr images import` and
/// skopeo read the archive. The image for `platform` is that of Docker's part.
pub fn archive(
    store: &Store,
    reference: &Reference,
    platform: &Platform,
    writer: &mut dyn Write,
) -> Result<()> {
    let descriptor = named(store, reference)?;
    let mut archive = Builder::new(writer);
    for digest in blobs(store, &descriptor)? {
        let file = store.blob(&digest)?;
        let path = store.blob_path(&digest);
        let size = file.metadata().map_err(|error| Error::storage("read", &path, error))?.len();
        append(&mut archive, &format!("blobs/sha256/{}", digest.hex()), size, file)?;
    }
    let mut outer = descriptor.clone();
    outer.annotations.insert(NAME.to_owned(), reference.tag_or_digest());
    outer.annotations.insert(CONTAINERD_NAME.to_owned(), reference.to_string());
    let index = serde_json::to_vec(&Index::new(vec![outer])).map_err(Error::invalid)?;
    append_bytes(&mut archive, "index.json", &index)?;
    if let Some(image) = Image::load(store, &descriptor.digest, platform)? {
        append_bytes(&mut archive, "manifest.json", &docker_manifest(&image, reference)?)?;
    }
    append_bytes(&mut archive, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    archive.into_inner().and_then(Write::flush).map_err(cannot)
}

fn docker_manifest(image: &Image, reference: &Reference) -> Result<Vec<u8>> {
    let path = |digest: &Digest| format!("blobs/sha256/{}", digest.hex());
    let layers: Vec<String> = image.layers().iter().map(|layer| path(&layer.digest)).collect();
    let names: Vec<String> = reference.tag().iter().map(|_| reference.to_string()).collect();
    let manifest = json!([{ "Config": path(image.id()), "RepoTags": names, "Layers": layers }]);
    serde_json::to_vec(&manifest).map_err(Error::invalid)
}

/// Copies an image or an index, with the manifests that refer to its images, from one store to another.
pub fn copy(store: &Store, reference: &Reference, target: &Store) -> Result<()> {
    let descriptor = named(store, reference)?;
    let mut subjects = vec![descriptor.digest.clone()];
    if media_type::is_index(&descriptor.media_type) {
        subjects.extend(store.manifests_of(&descriptor)?);
    }
    let mut referrers = Vec::new();
    for subject in &subjects {
        referrers.extend(store.referrers(subject)?);
    }
    for descriptor in std::iter::once(&descriptor).chain(&referrers) {
        for digest in blobs(store, descriptor)? {
            let mut writer = target.writer()?;
            io::copy(&mut store.blob(&digest)?, &mut writer).map_err(cannot)?;
            writer.commit(Some(&digest))?;
        }
    }
    for referrer in &referrers {
        target.tag(&reference.with_digest(referrer.digest.clone()), referrer)?;
    }
    target.tag(reference, &descriptor)
}

fn named(store: &Store, reference: &Reference) -> Result<Descriptor> {
    store.resolve(reference)?.ok_or_else(|| Error::NotFound(format!("the store has no image {reference}")))
}

/// Returns the digests of all blobs of an image or of an index.
fn blobs(store: &Store, descriptor: &Descriptor) -> Result<BTreeSet<Digest>> {
    let mut found = BTreeSet::from([descriptor.digest.clone()]);
    let manifests = if media_type::is_index(&descriptor.media_type) {
        let index: Index = store.document(&descriptor.digest)?;
        index
            .manifests
            .into_iter()
            .map(|manifest| manifest.digest)
            .filter(|digest| store.has(digest))
            .collect()
    } else {
        vec![descriptor.digest.clone()]
    };
    for digest in manifests {
        let manifest: Manifest = store.document(&digest)?;
        found.extend([digest, manifest.config.digest]);
        found.extend(manifest.layers.into_iter().map(|layer| layer.digest));
    }
    Ok(found)
}

fn append_bytes(archive: &mut Builder<&mut dyn Write>, path: &str, bytes: &[u8]) -> Result<()> {
    append(archive, path, bytes.len() as u64, bytes)
}

fn append(
    archive: &mut Builder<&mut dyn Write>,
    path: &str,
    size: u64,
    content: impl io::Read,
) -> Result<()> {
    let mut header = Header::new_ustar();
    header.set_path(path).map_err(cannot)?;
    header.set_mode(0o644);
    header.set_entry_type(EntryType::Regular);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size);
    header.set_cksum();
    archive.append(&header, content).map_err(cannot)
}

fn cannot(error: io::Error) -> Error {
    Error::storage("write", Path::new("an archive"), error)
}
