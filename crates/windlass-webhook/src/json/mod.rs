//! JSON of objects: depth, and changes that keep fields that a Rust type does not know.

mod changes;
mod depth;

#[cfg(test)]
mod tests;

pub(crate) use self::{
    changes::{apply_changes, same_element},
    depth::{MAX_DEPTH, is_deeper_than},
};
