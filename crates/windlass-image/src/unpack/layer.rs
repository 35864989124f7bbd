//! One layer, written over the layers below.

use std::io::{Read, Write};
use std::path::Path;

use tar::{Archive, Entry, EntryType};

use super::Limits;
use super::decode::LayerReader;
use super::header::{Extensions, Item, parts};
use super::tree::{Folder, Tree, Written, finish_file};
use crate::{Digest, Error, Result};

/// Marks a file of lower layers as removed, in front of the file's name.
const WHITEOUT: &str = ".wh.";

/// Marks all files of lower layers in a folder as removed.
const OPAQUE: &str = ".wh..wh..opq";

/// Begins the names of further markers, which have no files.
const MARKER: &str = ".wh..wh.";

/// Writes a layer. Returns the digest and the size without compression, and the number of entries.
pub(super) fn apply(reader: LayerReader, tree: &Tree, limits: &Limits) -> Result<(Digest, u64, u64)> {
    let mut layer = Layer { tree, written: Written::new() };
    let mut archive = Archive::new(reader);
    let mut extensions = Extensions::default();
    let mut count = 0;
    // In raw mode the archive does not collect long names, whose size has no limit.
    for entry in archive.entries().map_err(Error::invalid)?.raw(true) {
        let mut entry = entry.map_err(Error::invalid)?;
        count += 1;
        if count > limits.entries {
            return Err(Error::Invalid(format!("the image has more than {} entries", limits.entries)));
        }
        if let Some(item) = extensions.item(&mut entry)? {
            layer.write(&item, &mut entry)?;
        }
    }
    let (digest, size) = archive.into_inner().finish()?;
    Ok((digest, size, count))
}

struct Layer<'a> {
    tree: &'a Tree,
    written: Written,
}

impl Layer<'_> {
    fn write<R: Read>(&mut self, item: &Item, entry: &mut Entry<'_, R>) -> Result<()> {
        let Some((name, parent)) = item.path.split_last() else { return Ok(()) };
        if let Some(removed) = name.strip_prefix(WHITEOUT) {
            return self.white_out(name, removed, parent);
        }
        if is_skipped(item.kind) {
            tracing::debug!(path = item.path.join("/"), kind = ?item.kind, "left out an entry of a layer");
            return Ok(());
        }
        let Some(folder) = self.tree.folder(parent, true)? else { return Ok(()) };
        folder.mark(&mut self.written)?;
        match item.kind {
            EntryType::Directory => folder.make_folder(name, rights(item), &mut self.written),
            EntryType::Symlink if item.target.is_empty() => {
                Err(Error::Invalid(format!("the link {:?} has no target", item.path.join("/"))))
            }
            EntryType::Symlink => folder.make_link(name, &item.target, &mut self.written),
            EntryType::Link => self.link(&folder, name, &item.target),
            _ => self.file(&folder, name, item, entry),
        }
    }

    fn file<R: Read>(
        &mut self,
        folder: &Folder,
        name: &str,
        item: &Item,
        entry: &mut Entry<'_, R>,
    ) -> Result<()> {
        let mut file = folder.make_file(name, &mut self.written)?;
        let cannot = |error: std::io::Error| Error::storage("write", Path::new(&item.path.join("/")), error);
        let mut buffer = vec![0; 1 << 16];
        let mut size = 0;
        loop {
            let read = entry.read(&mut buffer).map_err(Error::invalid)?;
            if read == 0 {
                break;
            }
            size += read as u64;
            file.write_all(&buffer[..read]).map_err(cannot)?;
        }
        if size != item.size {
            return Err(Error::Invalid(format!("the layer ends inside of {:?}", item.path.join("/"))));
        }
        finish_file(&file, rights(item), item.modified).map_err(|error| cannot(error.into()))
    }

    fn link(&mut self, folder: &Folder, name: &str, target: &str) -> Result<()> {
        let target = parts(target)?;
        let missing =
            || Error::Invalid(format!("the hard link {name:?} has no target {:?}", target.join("/")));
        let (file, parent) = target.split_last().ok_or_else(missing)?;
        let from = self.tree.folder(parent, false)?.ok_or_else(missing)?;
        folder.make_hard_link(name, &from, file, &mut self.written)
    }

    fn white_out(&mut self, name: &str, removed: &str, parent: &[String]) -> Result<()> {
        let Some(folder) = self.tree.folder(parent, false)? else { return Ok(()) };
        if name == OPAQUE {
            return folder.clear_lower(&self.written);
        }
        if name.starts_with(MARKER) {
            return Ok(());
        }
        if matches!(removed, "" | "." | "..") {
            return Err(Error::Invalid(format!("the name {name:?} removes no file")));
        }
        folder.remove_lower(removed, &self.written)
    }
}

fn is_skipped(kind: EntryType) -> bool {
    let is_written = matches!(
        kind,
        EntryType::Regular
            | EntryType::Continuous
            | EntryType::Directory
            | EntryType::Symlink
            | EntryType::Link
    );
    !is_written
}

/// Returns the mode of a file. The rights of an owner who is not user 0 become the rights of all users.
fn rights(item: &Item) -> u32 {
    let owner = (item.mode >> 6) & 0o7;
    if item.user == 0 { item.mode } else { item.mode | owner << 3 | owner }
}
