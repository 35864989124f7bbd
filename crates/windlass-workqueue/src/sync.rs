//! Synchronisation primitives, replaced by loom's under `--cfg loom`.
//!
//! The `Plain…` atomics are std's atomics in both cases. Such an atomic is a counter, or accessed only under
//! a lock; no decision depends on the order of accesses, and a model would only multiply the interleavings.

pub(crate) use std::sync::atomic::{
    AtomicU8 as PlainU8, AtomicU32 as PlainU32, AtomicU64 as PlainU64, AtomicUsize as PlainUsize,
};

#[cfg(not(loom))]
mod real {
    pub(crate) use parking_lot::Mutex;
    pub(crate) use std::sync::Arc;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
}

#[cfg(loom)]
mod modelled {
    pub(crate) use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

    /// loom's mutex with the interface of `parking_lot`'s.
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("no model panics while it holds the lock")
        }
    }
}

#[cfg(loom)]
pub(crate) use modelled::*;
#[cfg(not(loom))]
pub(crate) use real::*;

/// Gives a value separate cache lines, to avoid false sharing.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Padded<T>(pub(crate) T);

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
