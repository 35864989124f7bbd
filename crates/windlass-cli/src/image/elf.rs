//! The loader and the libraries that a program names.

/// The loader and the libraries of a program. A static program has neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    pub(super) loader: Option<String>,
    pub(super) libraries: Vec<String>,
}

const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const INTERPRETER: u32 = 3;

const NEEDED: u64 = 1;
const STRING_TABLE: u64 = 5;

/// The longest name of a loader or of a library, in bytes.
const LONGEST: usize = 4096;

/// A part of a program, as the program header describes the part.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

/// Reads a program or a library of 64 bits, little endian. Returns `None` for other files.
pub(super) fn needs(bytes: &[u8]) -> Option<Needs> {
    if bytes.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let segments = segments(bytes)?;
    let of = |kind| segments.iter().find(|segment| segment.kind == kind);
    let loader = match of(INTERPRETER) {
        Some(segment) => Some(text(bytes, segment.offset)?),
        None => None,
    };
    let Some(dynamic) = of(DYNAMIC) else { return Some(Needs { loader, libraries: Vec::new() }) };
    let entries = entries(bytes, dynamic)?;
    let find = |tag| entries.iter().filter(move |(other, _)| *other == tag).map(|(_, value)| *value);
    let Some(table) = find(STRING_TABLE).next() else { return Some(Needs { loader, libraries: Vec::new() }) };
    let table = offset(&segments, table)?;
    let libraries: Option<Vec<String>> =
        find(NEEDED).map(|name| text(bytes, table.checked_add(name)?)).collect();
    Some(Needs { loader, libraries: libraries? })
}

fn segments(bytes: &[u8]) -> Option<Vec<Segment>> {
    let start = u64_at(bytes, 32)?;
    let (size, count) = (u64::from(u16_at(bytes, 54)?), u64::from(u16_at(bytes, 56)?));
    let segment = |index: u64| {
        let at = start.checked_add(index.checked_mul(size)?)?;
        let field = |offset: u64| u64_at(bytes, at.checked_add(offset)?);
        let kind = u32::try_from(field(0)? & 0xffff_ffff).ok()?;
        Some(Segment { kind, offset: field(8)?, address: field(16)?, size: field(32)? })
    };
    (0..count).map(segment).collect()
}

fn entries(bytes: &[u8], dynamic: &Segment) -> Option<Vec<(u64, u64)>> {
    let mut entries = Vec::new();
    for at in (0..dynamic.size / 16).map(|index| dynamic.offset.checked_add(index * 16)) {
        let at = at?;
        let (tag, value) = (u64_at(bytes, at)?, u64_at(bytes, at.checked_add(8)?)?);
        if tag == 0 {
            break;
        }
        entries.push((tag, value));
    }
    Some(entries)
}

/// Returns the place of an address in the file.
fn offset(segments: &[Segment], address: u64) -> Option<u64> {
    let has = |segment: &&Segment| {
        segment.kind == LOAD && address >= segment.address && address - segment.address < segment.size
    };
    let segment = segments.iter().find(has)?;
    (address - segment.address).checked_add(segment.offset)
}

fn text(bytes: &[u8], at: u64) -> Option<String> {
    let rest = bytes.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().take(LONGEST).position(|byte| *byte == 0)?;
    String::from_utf8(rest[..end].to_vec()).ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: u64) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn this_test_names_its_libraries() {
        let bytes = std::fs::read(std::env::current_exe().expect("a path")).expect("a program");
        let needs = needs(&bytes).expect("a program of this machine");
        if let Some(loader) = needs.loader {
            assert!(loader.starts_with('/') && std::path::Path::new(&loader).exists(), "{loader}");
            assert!(
                needs.libraries.iter().any(|library| library.starts_with("libc.")),
                "{:?}",
                needs.libraries
            );
        }
    }

    #[test]
    fn other_files_and_cut_files_are_no_programs() {
        assert_eq!(needs(b"#!/bin/sh"), None);
        let mut bytes = b"\x7fELF\x02\x01".to_vec();
        bytes.resize(64, 0xff);
        assert_eq!(needs(&bytes), None);
    }
}
