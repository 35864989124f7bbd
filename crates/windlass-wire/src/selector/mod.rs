//! Label and field selectors of list and watch requests.

mod field;
mod label;

pub use field::{FieldOperator, FieldRequirement, FieldSelector, unknown_field};
pub use label::{LabelOperator, LabelRequirement, LabelSelector};

#[cfg(test)]
mod tests;
