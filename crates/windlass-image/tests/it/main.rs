//! Tests of images from the outside.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test")]

mod disk;
mod faults;
mod front;
mod login;
mod referrers;
mod registry;
mod sample;
mod store;
mod unpack;
