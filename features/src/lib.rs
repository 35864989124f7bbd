//! Selects the features of dependencies for the tests of a single crate.
//!
//! Cargo builds a dependency with the features that the selected crates ask for. After `cargo test`, `cargo test -p X` would therefore build
//! tokio, serde and every crate above tokio and serde again, with fewer features. A crate with `windlass-features` among its dev-dependencies
//! selects the features of the whole workspace, and shares the dependencies that `cargo test` has built.

#![forbid(unsafe_code)]
