//! Two copies of the state: readers read a published copy while the writer writes the hidden copy.
//!
//! A reader takes a shared lock on the published copy and never waits for it, because the writer locks only the hidden copy.
//! If the writer publishes between the reader's look at which copy is published and its lock, the reader notices and tries
//! again. The writer waits for readers that are still in the copy that it wants; a reader only clones reference counts there.

use self::sync::{AtomicUsize, Ordering, RwLock, pause};

#[cfg(not(loom))]
mod sync {
    pub(super) use std::{
        hint::spin_loop as pause,
        sync::atomic::{AtomicUsize, Ordering},
    };

    pub(super) use parking_lot::RwLock;
}

/// The primitives that loom replaces when it explores the interleavings (`--cfg loom`).
#[cfg(loom)]
mod sync {
    use loom::sync::{RwLockReadGuard, RwLockWriteGuard};
    pub(super) use loom::{
        sync::atomic::{AtomicUsize, Ordering},
        thread::yield_now as pause,
    };

    /// `parking_lot`'s shape over loom's lock.
    #[derive(Debug)]
    pub(super) struct RwLock<T>(loom::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(super) fn new(value: T) -> Self {
            Self(loom::sync::RwLock::new(value))
        }

        pub(super) fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().expect("not poisoned")
        }

        pub(super) fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
            self.0.try_read().ok()
        }

        pub(super) fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().expect("not poisoned")
        }

        pub(super) fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
            self.0.try_write().ok()
        }
    }
}

/// A state that changes by repeatable operations: the operations are repeated on the other copy.
pub(super) trait Replica: Clone {
    type Operation;

    fn apply(&mut self, operation: Self::Operation);
}

/// The operations that the hidden copy lacks.
#[derive(Debug)]
pub(super) struct OperationLog<O> {
    operations: Vec<O>,
    /// The hidden copy is cloned instead.
    everything: bool,
}

impl<O> OperationLog<O> {
    pub(super) fn new() -> Self {
        Self { operations: Vec::new(), everything: false }
    }

    pub(super) fn push(&mut self, operation: O) {
        self.operations.push(operation);
    }

    /// Discards the operations of a write that panicked. The hidden copy will be cloned from the published
    /// copy.
    pub(super) fn discard(&mut self) {
        self.operations.clear();
        self.everything = true;
    }

    /// Publishes changes that were not logged. The other copy will be cloned.
    pub(super) fn push_everything(&mut self) {
        self.everything = true;
    }

    fn is_empty(&self) -> bool {
        self.operations.is_empty() && !self.everything
    }

    fn bring_up_to_date<S: Replica<Operation = O>>(&mut self, behind: &mut S, newest: &RwLock<S>) {
        if std::mem::take(&mut self.everything) {
            self.operations.clear();
            behind.clone_from(&newest.read());
        }
        self.operations.drain(..).for_each(|operation| behind.apply(operation));
    }
}

#[derive(Debug)]
pub(super) struct Copies<S> {
    states: [RwLock<S>; 2],
    published: AtomicUsize,
}

impl<S: Replica> Copies<S> {
    /// Creates the pair from two equal states.
    pub(super) fn new(states: [S; 2]) -> Self {
        Self { states: states.map(RwLock::new), published: AtomicUsize::new(0) }
    }

    /// Reads the published copy.
    pub(super) fn read<R>(&self, read: impl FnOnce(&S) -> R) -> R {
        loop {
            let published = self.published.load(Ordering::Acquire);
            // The copy may have been hidden and changed in the meantime, with changes that are not published
            // yet.
            if let Some(state) = self.states[published].try_read()
                && self.published.load(Ordering::Acquire) == published
            {
                return read(&state);
            }
            pause();
        }
    }

    /// Changes the hidden copy and publishes the copy, unless the log stays empty. `log` has the operations
    /// that the hidden copy lacks; afterwards, `log` has the operations that the other copy lacks. There must
    /// be only one writer.
    pub(super) fn write<R>(
        &self,
        log: &mut OperationLog<S::Operation>,
        write: impl FnOnce(&mut S, &mut OperationLog<S::Operation>) -> R,
    ) -> R {
        let published = self.published.load(Ordering::Acquire);
        let hidden = 1 - published;
        let mut state = self.states[hidden].write();
        log.bring_up_to_date(&mut *state, &self.states[published]);
        let result = write(&mut state, log);
        drop(state);
        if log.is_empty() {
            return result;
        }
        self.published.store(hidden, Ordering::Release);
        // Usually no reader is left in the other copy. An update of that copy now releases old objects.
        if let Some(mut state) = self.states[published].try_write() {
            log.bring_up_to_date(&mut *state, &self.states[hidden]);
        }
        result
    }
}
