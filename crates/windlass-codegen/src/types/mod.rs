//! Rust types from the schema of a CRD.
