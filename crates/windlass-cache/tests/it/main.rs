//! The cache from the outside.

mod frame;
mod store;
