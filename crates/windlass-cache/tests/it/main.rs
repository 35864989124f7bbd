//! Tests of the cache through the public API.

mod decode;
mod frame;
mod informer;
mod model;
mod reflector;
mod store;
