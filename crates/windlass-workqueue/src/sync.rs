//! The primitives that loom replaces when it explores the interleavings (`--cfg loom`).
//!
//! What only counts, or is written and read under a lock, takes the standard atomics in both cases (`Plain…`): it
//! decides nothing, and would only multiply the interleavings.

pub(crate) use std::sync::atomic::{
    AtomicI64 as PlainI64, AtomicU32 as PlainU32, AtomicU64 as PlainU64, AtomicUsize as PlainUsize,
};

#[cfg(not(loom))]
mod real {
    pub(crate) use parking_lot::{Mutex, RwLock};
    pub(crate) use std::sync::Arc;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

    pub(crate) use crossbeam_queue::SegQueue as Fifo;
}

#[cfg(loom)]
mod modelled {
    pub(crate) use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
    use std::collections::VecDeque;

    /// `parking_lot`'s shape over loom's mutex.
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("no model panics while it holds the lock")
        }
    }

    /// `parking_lot`'s shape over loom's reader-writer lock.
    pub(crate) struct RwLock<T>(loom::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::RwLock::new(value))
        }

        pub(crate) fn read(&self) -> loom::sync::RwLockReadGuard<'_, T> {
            self.0.read().expect("no model panics while it holds the lock")
        }

        pub(crate) fn write(&self) -> loom::sync::RwLockWriteGuard<'_, T> {
            self.0.write().expect("no model panics while it holds the lock")
        }
    }

    /// A queue as loom can see it. The real one is crossbeam's, which has its own proofs.
    pub(crate) struct Fifo<T>(Mutex<VecDeque<T>>);

    impl<T> Fifo<T> {
        pub(crate) fn new() -> Self {
            Self(Mutex::new(VecDeque::new()))
        }

        pub(crate) fn push(&self, value: T) {
            self.0.lock().push_back(value);
        }

        pub(crate) fn pop(&self) -> Option<T> {
            self.0.lock().pop_front()
        }

        pub(crate) fn is_empty(&self) -> bool {
            self.0.lock().is_empty()
        }

        pub(crate) fn len(&self) -> usize {
            self.0.lock().len()
        }
    }
}

#[cfg(loom)]
pub(crate) use modelled::*;
#[cfg(not(loom))]
pub(crate) use real::*;

/// Keeps a value on cache lines of its own: what one core writes often must not lie beside what another one reads.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Padded<T>(pub(crate) T);

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
