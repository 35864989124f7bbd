//! Fuzz targets: properties that must hold for every input.
//!
//! A target takes bytes and panics if the property of the target is violated.
#![forbid(unsafe_code)]

mod cache;
mod cel;
mod fields;
mod patch;
mod schema;
mod streams;
mod wire;

/// A function that panics if the function's property does not hold for the input.
pub type Target = fn(&[u8]);

/// All targets, by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("scan", cache::scan),
    ("scan-twins", cache::scan_twins),
    ("bases", cache::bases),
    ("watch-frames", cache::watch_frames),
    ("list-frames", cache::list_frames),
    ("cel-parse", cel::parse),
    ("cel-check-eval", cel::check_and_evaluate),
    ("selectors", wire::selectors),
    ("field-selectors", wire::field_selectors),
    ("bodies", wire::bodies),
    ("continue-tokens", wire::continue_tokens),
    ("accept", wire::accept),
    ("printer-columns", wire::printer_columns),
    ("spdy-frames", streams::spdy_frames),
    ("channels", streams::channels),
    ("protobuf", schema::protobuf),
    ("crd-schemas", schema::crd_schemas),
    ("json-patch", patch::json_patch),
    ("merge-patch", patch::merge),
    ("strategic-merge", patch::strategic_merge),
    ("fields-v1", fields::fields_v1),
    ("apply", fields::apply),
];

/// Returns the target with this name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, target)| *target)
}

/// Splits an input at the first zero byte.
fn split(data: &[u8]) -> (&[u8], &[u8]) {
    match data.iter().position(|byte| *byte == 0) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[]),
    }
}
