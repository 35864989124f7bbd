//! The state of the CustomResourceDefinitions: accepted names, and served resources.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Resource, ServedResources, custom};
use crate::crd::{self, Names};
use crate::meta;
use crate::store::{Stored, View};
use crate::webhook::Clients;
use windlass_kinds::resources::DEFINITIONS;

/// All definitions, at the last settled revision of each definition.
pub(crate) struct Definitions {
    /// Call the conversion webhooks.
    clients: Arc<Clients>,
    by_name: BTreeMap<String, Definition>,
    /// The names of the definitions of each group.
    groups: HashMap<String, BTreeSet<String>>,
}

/// A definition, at the revision at which the server last settled the definition.
struct Definition {
    rv: u64,
    group: String,
    names: Names,
    /// True if names were refused: the names may be free later.
    has_conflict: bool,
    /// A digest of the part of the definition that determines the resources.
    served_by: [u8; 32],
    resources: Vec<Arc<Resource>>,
}

/// The consequences of a definition's change.
#[derive(Default)]
pub(crate) struct CrdDiff {
    /// Resources that are not served any more, or not in this way.
    pub(crate) retired: Vec<Arc<Resource>>,
    /// Definitions with names that may be free by now.
    pub(crate) waiting: Vec<String>,
}

impl Definitions {
    /// Creates an empty set. `clients` call the conversion webhooks.
    pub(crate) fn new(clients: Arc<Clients>) -> Self {
        Self { clients, by_name: BTreeMap::new(), groups: HashMap::new() }
    }

    /// Returns the definitions that were written or removed since the last settlement.
    pub(crate) fn outdated(&self, view: &View) -> Vec<String> {
        let id = &DEFINITIONS;
        let written = view
            .range(id, None)
            .filter(|(name, stored)| self.by_name.get(&***name).is_none_or(|known| known.rv != stored.rv));
        let gone = self.by_name.keys().filter(|name| view.get(id, name).is_none());
        written.map(|(name, _)| name.to_string()).chain(gone.cloned()).collect()
    }

    /// Decides the accepted names of a definition, and the condition `Established`.
    pub(crate) fn accept_names(&self, definition: &mut Value, now: &str) {
        let (group, name) = (crd::text(definition, &["spec", "group"]), meta::name(definition));
        let others: Vec<&Names> = self
            .groups
            .get(group)
            .into_iter()
            .flatten()
            .filter(|other| *other != name)
            .filter_map(|other| self.by_name.get(other))
            .map(|other| &other.names)
            .collect();
        crd::accept(definition, &others, now);
    }

    /// Records a definition, and serves the definition's resources in `served`. `builtin` is the built-in
    /// part of `served`.
    pub(crate) fn learn(
        &mut self,
        builtin: &ServedResources,
        served: &mut ServedResources,
        stored: &Arc<Stored>,
        value: &Value,
    ) -> CrdDiff {
        let name = meta::name(value);
        let group = crd::text(value, &["spec", "group"]).to_owned();
        let served_by = what_is_served(value);
        let names = Names::accepted(value);
        let old = self.by_name.remove(name);
        let has_freed = old.as_ref().is_some_and(|old| old.names != names);
        let is_same = old.as_ref().is_some_and(|old| old.served_by == served_by);
        let (resources, retired) = match old {
            Some(old) if is_same => (old.resources, Vec::new()),
            old => (
                custom::resources(stored, value, &self.clients),
                old.map(|old| old.resources).unwrap_or_default(),
            ),
        };
        let has_conflict = !crd::condition_is_true(value, "NamesAccepted");
        let definition =
            Definition { rv: stored.rv, group: group.clone(), names, has_conflict, served_by, resources };
        self.by_name.insert(name.to_owned(), definition);
        self.groups.entry(group.clone()).or_default().insert(name.to_owned());
        if !is_same {
            self.publish_group(builtin, served, &group);
        }
        let waiting = if has_freed { self.waiting(&group, name) } else { Vec::new() };
        CrdDiff { retired, waiting }
    }

    /// Forgets a deleted definition, and stops serving the definition's resources.
    pub(crate) fn forget(
        &mut self,
        builtin: &ServedResources,
        served: &mut ServedResources,
        name: &str,
    ) -> CrdDiff {
        let Some(old) = self.by_name.remove(name) else { return CrdDiff::default() };
        if let Some(names) = self.groups.get_mut(&old.group) {
            names.remove(name);
            if names.is_empty() {
                self.groups.remove(&old.group);
            }
        }
        self.publish_group(builtin, served, &old.group);
        CrdDiff { waiting: self.waiting(&old.group, name), retired: old.resources }
    }

    /// Returns the definitions of a group, except `but_for`, that wait for names.
    fn waiting(&self, group: &str, but_for: &str) -> Vec<String> {
        let names = self.groups.get(group).into_iter().flatten().filter(|name| *name != but_for);
        let waits = |name: &&String| self.by_name.get(*name).is_some_and(|known| known.has_conflict);
        names.filter(waits).cloned().collect()
    }

    fn publish_group(&self, builtin: &ServedResources, served: &mut ServedResources, group: &str) {
        let names = self.groups.get(group).into_iter().flatten();
        let definitions = names.filter_map(|name| self.by_name.get(name));
        let resources = definitions.flat_map(|definition| definition.resources.iter().cloned()).collect();
        served.replace_group(group, builtin.group(group), resources);
    }
}

/// Returns a digest of the part of a definition that determines the resources.
fn what_is_served(definition: &Value) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(meta::uid(definition));
    for part in [&definition["spec"], &definition["status"]["acceptedNames"]] {
        digest.update(part.to_string());
    }
    digest.update([u8::from(crd::is_established(definition))]);
    digest.finalize().into()
}
