//! The cache from the outside.

mod decode;
mod frame;
mod informer;
mod model;
mod reflector;
mod store;
