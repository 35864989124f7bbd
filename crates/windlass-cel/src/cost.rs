//! Costs: estimated before an evaluation, and counted during an evaluation. The numbers are those of cel-go
//! and Kubernetes.

pub(crate) mod actual;
mod estimate;
mod function;
mod path;
mod range;

pub use estimate::SizeHints;
pub(crate) use estimate::estimate;
pub use range::Range;
