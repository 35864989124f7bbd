//! What must hold for any input: the bodies of the fuzz targets.
//!
//! Each target takes bytes and panics if something does not hold. None may panic for any other reason.
#![forbid(unsafe_code)]

mod cache;
mod schema;
mod wire;

/// A target: bytes in, a panic if something does not hold.
pub type Target = fn(&[u8]);

/// All targets, by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("scan", cache::scan),
    ("scan-twins", cache::scan_twins),
    ("shapes", cache::shapes),
    ("watch-frames", cache::watch_frames),
    ("list-frames", cache::list_frames),
    ("selectors", wire::selectors),
    ("field-selectors", wire::field_selectors),
    ("bodies", wire::bodies),
    ("continue-tokens", wire::continue_tokens),
    ("accept", wire::accept),
    ("printer-columns", wire::printer_columns),
    ("protobuf", schema::protobuf),
    ("crd-schemas", schema::crd_schemas),
    ("strategic-merge", schema::strategic_merge),
];

/// The target of that name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, target)| *target)
}

/// Two inputs in one: the bytes before and after the first zero.
fn split(data: &[u8]) -> (&[u8], &[u8]) {
    match data.iter().position(|byte| *byte == 0) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[]),
    }
}
