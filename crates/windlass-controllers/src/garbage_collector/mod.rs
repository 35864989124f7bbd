//! Deletes what nobody owns any more.

mod graph;
mod verdict;
