//! The cache from the outside.

mod frame;
mod informer;
mod reflector;
mod store;
