//! The server seen from the outside, through its in-process service.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod footprint;
mod harness;

mod custom;
mod kinds;
mod lists;
mod objects;
mod pods;
mod watches;
