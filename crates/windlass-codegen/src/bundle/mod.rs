//! Bundle: a bundle for the Operator Lifecycle Manager.
