//! JSON of objects: depth, and changes that keep fields that a Rust type does not know.

mod changes;
mod depth;
mod nulls;

#[cfg(test)]
mod tests;

pub(crate) use self::{
    changes::{apply_changes, keeps_order, same_element},
    depth::{MAX_DEPTH, is_deeper_than},
    nulls::remove_new_nulls,
};
