//! The listers of Rust types, made once.

use std::{
    any::{Any, TypeId},
    sync::atomic::{AtomicU64, Ordering},
};

use hashbrown::HashMap;
use parking_lot::RwLock;

use crate::{error::Result, lister::Lister};

/// The listers of Rust types that a controller has read: a read looks up a type instead of the names of a kind.
#[derive(Default)]
pub(super) struct TypedListers {
    listers: RwLock<HashMap<TypeId, Box<dyn Any + Send + Sync>, foldhash::fast::FixedState>>,
    /// Grows when the declared caches change.
    generation: AtomicU64,
}

impl TypedListers {
    /// Returns the lister of a type that was read before.
    pub(super) fn known<C: 'static>(&self) -> Option<Lister<C>> {
        let listers = self.listers.read();
        listers.get(&TypeId::of::<C>())?.downcast_ref::<Lister<C>>().cloned()
    }

    /// Returns the lister of a type. `make` makes the lister at the first read.
    pub(super) fn get<C: Send + Sync + 'static>(
        &self,
        make: impl FnOnce() -> Result<Lister<C>>,
    ) -> Result<Lister<C>> {
        if let Some(known) = self.known() {
            return Ok(known);
        }
        let generation = self.generation.load(Ordering::Acquire);
        let lister = make()?;
        let mut listers = self.listers.write();
        if generation == self.generation.load(Ordering::Acquire) {
            listers.insert(TypeId::of::<C>(), Box::new(lister.clone()));
        }
        Ok(lister)
    }

    /// Forgets the listers, because the declared caches have changed. A remembered lister keeps its watch alive.
    pub(super) fn clear(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        let listers = std::mem::take(&mut *self.listers.write());
        // Outside of the lock: the end of a watch runs code of other parts.
        drop(listers);
    }
}
