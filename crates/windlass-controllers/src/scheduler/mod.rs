//! Finds a node for every pod.

mod fit;
mod quantity;
