//! The entries of a layer, with the long names of GNU tar and of POSIX.

use std::io::Read;

use tar::{Entry, EntryType, PaxExtensions};

use crate::{Error, Result};

/// The longest path or target of a link, in bytes.
const LONGEST: usize = 4096;

/// The largest record of extended headers, in bytes.
const LARGEST_EXTENSION: u64 = 1 << 20;

/// The last second of the year 9999.
const LAST_TIME: u64 = 253_402_300_799;

/// Long names, which come before the entry.
#[derive(Default)]
pub(super) struct Extensions {
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    size: Option<u64>,
}

/// An entry of a layer: a file, a directory or a link.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) kind: EntryType,
    /// The parts of the path, without `.` and empty parts.
    pub(super) path: Vec<String>,
    /// The target of a link, as the layer has the target.
    pub(super) target: String,
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) user: u64,
    pub(super) modified: u64,
}

impl Extensions {
    /// Returns the item of an entry. Returns `None` if the entry is an extended header, which belongs to the next entry.
    pub(super) fn item<R: Read>(&mut self, entry: &mut Entry<'_, R>) -> Result<Option<Item>> {
        match entry.header().entry_type() {
            EntryType::GNULongName => self.path = Some(without_nul(read(entry)?)),
            EntryType::GNULongLink => self.target = Some(without_nul(read(entry)?)),
            EntryType::XHeader => self.pax(&read(entry)?)?,
            EntryType::XGlobalHeader => {
                read(entry)?;
            }
            EntryType::GNUSparse => return Err(Error::invalid("sparse files are not supported")),
            _ => return std::mem::take(self).complete(entry).map(Some),
        }
        Ok(None)
    }

    fn pax(&mut self, bytes: &[u8]) -> Result<()> {
        for record in PaxExtensions::new(bytes) {
            let record =
                record.map_err(|error| Error::Invalid(format!("an extended header is invalid: {error}")))?;
            match record.key_bytes() {
                b"path" => self.path = Some(record.value_bytes().to_vec()),
                b"linkpath" => self.target = Some(record.value_bytes().to_vec()),
                b"size" => self.size = record.value().ok().and_then(|size| size.parse().ok()),
                key if key.starts_with(b"GNU.sparse.") => {
                    return Err(Error::invalid("sparse files are not supported"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn complete<R: Read>(self, entry: &Entry<'_, R>) -> Result<Item> {
        let header = entry.header();
        let bad = |error| Error::Invalid(format!("the header of an entry is invalid: {error}"));
        let size = header.entry_size().map_err(bad)?;
        if self.size.is_some_and(|extended| extended != size) {
            return Err(Error::invalid("an entry has two sizes"));
        }
        let path = self.path.unwrap_or_else(|| header.path_bytes().into_owned());
        let target = self.target.or_else(|| header.link_name_bytes().map(std::borrow::Cow::into_owned));
        let is_folder = path.ends_with(b"/") && header.entry_type() == EntryType::Regular;
        Ok(Item {
            kind: if is_folder { EntryType::Directory } else { header.entry_type() },
            path: parts(&text(path)?)?,
            target: text(target.unwrap_or_default())?,
            size,
            mode: header.mode().map_err(bad)?,
            user: header.uid().map_err(bad)?,
            modified: header.mtime().unwrap_or_default().min(LAST_TIME),
        })
    }
}

/// Reads the content of an extended header.
fn read<R: Read>(entry: &mut Entry<'_, R>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    entry.take(LARGEST_EXTENSION + 1).read_to_end(&mut bytes).map_err(Error::invalid)?;
    if bytes.len() as u64 > LARGEST_EXTENSION {
        return Err(Error::invalid("an extended header is larger than 1 MiB"));
    }
    Ok(bytes)
}

fn without_nul(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    bytes
}

fn text(bytes: Vec<u8>) -> Result<String> {
    if bytes.len() > LONGEST {
        return Err(Error::Invalid(format!("a path is longer than {LONGEST} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| Error::invalid("a path is not UTF-8"))?;
    if text.contains('\0') { Err(Error::invalid("a path contains a NUL byte")) } else { Ok(text) }
}

/// Splits a path. Refuses `..`, which no tool for images writes.
pub(super) fn parts(path: &str) -> Result<Vec<String>> {
    let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    let parts: Vec<String> = parts.map(str::to_owned).collect();
    if parts.iter().any(|part| part == "..") {
        return Err(Error::Invalid(format!("the path {path:?} leaves the root")));
    }
    Ok(parts)
}
