//! The cache from the outside.

mod frame;
mod informer;
mod model;
mod reflector;
mod store;
