//! The cache from the outside.

mod store;
