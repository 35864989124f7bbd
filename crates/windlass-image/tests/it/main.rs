//! Tests of images from the outside.
#![allow(clippy::unwrap_used)]

mod registry;
mod sample;
mod store;
mod unpack;
