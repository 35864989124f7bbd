//! The contexts of a controller in several clusters.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock, Weak},
};

use super::{Context, ControllerContext};
use crate::error::{Error, Result};

/// The contexts of a controller by the name of the cluster. The manager's own cluster has no name. Each
/// context has this map; the map holds weak references, and therefore keeps no context alive.
#[derive(Clone, Default)]
pub(crate) struct Clusters(Arc<OnceLock<BTreeMap<Option<String>, Weak<ControllerContext>>>>);

impl Clusters {
    /// Connects the contexts of a controller. Called once.
    pub(crate) fn connect<'a>(
        &self,
        contexts: impl Iterator<Item = (Option<&'a str>, &'a Arc<ControllerContext>)>,
    ) {
        let contexts = contexts.map(|(name, context)| (name.map(str::to_owned), Arc::downgrade(context)));
        let _ = self.0.set(contexts.collect());
    }

    fn find(&self, name: Option<&str>) -> Option<&Weak<ControllerContext>> {
        self.0.get()?.get(&name.map(str::to_owned))
    }
}

impl<K> Context<K> {
    /// Returns this context in a further [`Cluster`](crate::manager::Cluster) of the manager: reads come from the watches that the
    /// controller declares [there](crate::Watch::in_cluster), and writes and events go there.
    ///
    /// # Errors
    /// The manager has no cluster of this name, or the context of the cluster has ended.
    pub fn in_cluster(&self, name: &str) -> Result<Self> {
        self.sibling(Some(name)).ok_or_else(|| {
            Error::setup(format!(
                "controller {:?}: the manager has no cluster called {name:?}; add it with `Manager::cluster`",
                self.controller()
            ))
        })?
    }

    /// Returns this context in the manager's own cluster.
    ///
    /// # Errors
    /// The manager has ended.
    pub fn in_own_cluster(&self) -> Result<Self> {
        self.sibling(None).unwrap_or_else(|| Ok(self.clone()))
    }

    /// Returns the context in another cluster; `None` for an unknown cluster.
    fn sibling(&self, name: Option<&str>) -> Option<Result<Self>> {
        let context = self.shared.clusters.find(name)?;
        Some(context.upgrade().map(Self::new).ok_or_else(Error::stopped))
    }
}
