//! Storage classes and volume attributes classes.

pub(crate) mod storage_class;
pub(crate) mod volume_attributes_class;
