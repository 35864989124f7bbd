//! Tests of images from the outside.
#![allow(clippy::unwrap_used)]

mod sample;
mod store;
mod unpack;
