//! The bits of the blob's format. `cargo xtask codegen` compiles this file too.

/// Bits of the first number of a node. The lowest three bits are the type of the node.
pub(crate) mod node_bit {
    pub(crate) const LIST_TYPE: u32 = 3;
    pub(crate) const MAP_ATOMIC: u32 = 1 << 5;
    pub(crate) const INT_OR_STRING: u32 = 1 << 6;
    pub(crate) const PRESERVE: u32 = 1 << 7;
    pub(crate) const FORMAT: u32 = 1 << 8;
    pub(crate) const REQUIRED: u32 = 1 << 9;
    pub(crate) const ENUM: u32 = 1 << 10;
    pub(crate) const PROPERTIES: u32 = 1 << 11;
    pub(crate) const ADDITIONAL: u32 = 1 << 12;
    pub(crate) const ITEMS: u32 = 1 << 13;
    pub(crate) const MAP_KEYS: u32 = 1 << 14;
    pub(crate) const UNIONS: u32 = 1 << 15;
}

/// Bits of the first number of an edge. The lowest two are the treatment of empty values.
pub(crate) mod edge_bit {
    pub(crate) const NAMED: u32 = 1 << 2;
    pub(crate) const DEFAULT: u32 = 1 << 3;
    pub(crate) const MERGE: u32 = 1 << 4;
    pub(crate) const RETAIN_KEYS: u32 = 1 << 5;
    pub(crate) const MERGE_KEY: u32 = 1 << 6;
    pub(crate) const PROTO: u32 = 1 << 7;
    pub(crate) const GIVEN_DEFAULT: u32 = 1 << 8;
    pub(crate) const GO_TYPE: u32 = 1 << 9;
    pub(crate) const GO_INLINED: u32 = 1 << 10;
    pub(crate) const REPLACE: u32 = 1 << 11;
    pub(crate) const GRANULAR: u32 = 1 << 12;
}
