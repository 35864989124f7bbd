//! The roles and bindings of a server, indexed by subject.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::Rule;
use crate::access::{Identity, service_account_name};
use crate::object_meta as meta;
use crate::store::{Change, ResourceId, Store, Stored, Tail, View};

pub(super) const GROUP: &str = "rbac.authorization.k8s.io";

/// A function of the objects of a resource that is updated object by object.
pub(super) trait Index: Default {
    fn insert(&mut self, key: &Arc<str>, object: &Stored);
    fn remove(&mut self, key: &str);
}

/// An index and the revision of the index.
pub(super) struct Followed<T> {
    id: ResourceId,
    revision: u64,
    /// The revision of the last change of the resource until then.
    changed: u64,
    index: T,
}

impl<T: Index> Followed<T> {
    fn new(resource: &str) -> Self {
        Self { id: ResourceId::new(GROUP, resource), revision: 0, changed: 0, index: T::default() }
    }

    /// Returns whether the index has every change that is in `view`.
    fn is_current(&self, view: &View) -> bool {
        self.changed >= view.changed(&self.id)
    }

    /// Applies the changes up to `view`.
    fn follow(&mut self, store: &Store, view: &View) {
        if self.is_current(view) {
            return;
        }
        let changed = view.changed(&self.id);
        let events = match store.log(&self.id).tail(self.revision, usize::MAX) {
            // A commit publishes the view first and the event afterwards.
            Tail::Events(events) if events.last().is_some_and(|last| last.rv >= changed) => Some(events),
            _ => None,
        };
        if let Some(events) = events.filter(|_| self.revision > 0) {
            for event in events.iter().take_while(|event| event.rv <= view.revision()) {
                self.index.remove(&event.key);
                if event.change != Change::Deleted {
                    self.index.insert(&event.key, &event.object);
                }
            }
        } else {
            self.index = T::default();
            for (key, object) in view.range(&self.id, None) {
                self.index.insert(key, object);
            }
        }
        (self.revision, self.changed) = (view.revision(), changed);
    }
}

/// The rules of roles by key.
#[derive(Default)]
pub(super) struct Roles(HashMap<Arc<str>, Vec<Rule>>);

impl Roles {
    pub(super) fn rules(&self, key: &str) -> Option<&[Rule]> {
        self.0.get(key).map(Vec::as_slice)
    }
}

impl Index for Roles {
    fn insert(&mut self, key: &Arc<str>, object: &Stored) {
        self.0.insert(Arc::clone(key), Rule::read_all(&object.value()));
    }

    fn remove(&mut self, key: &str) {
        self.0.remove(key);
    }
}

/// A subject of a binding, in the terms of requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Subject {
    User(String),
    Group(String),
}

/// A role binding or a cluster role binding.
pub(super) struct Binding {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) role: RoleRef,
    /// The subjects, with the descriptions for the authoriser's reasons.
    subjects: Vec<(Subject, String)>,
}

/// The role that a binding grants.
#[derive(Clone, Debug)]
pub struct RoleRef {
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// The name of the role.
    pub name: String,
}

impl RoleRef {
    /// Reads the `roleRef` of a binding.
    pub fn of(binding: &Value) -> Self {
        let text = |pointer: &str| binding.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        Self { kind: text("/roleRef/kind").to_owned(), name: text("/roleRef/name").to_owned() }
    }
}

impl Binding {
    fn read(object: &Value) -> Self {
        let namespace = meta::namespace(object);
        let subjects = object.get("subjects").and_then(Value::as_array).into_iter().flatten();
        Self {
            role: RoleRef::of(object),
            subjects: subjects.filter_map(|subject| read_subject(subject, namespace)).collect(),
            namespace: namespace.to_owned(),
            name: meta::name(object).to_owned(),
        }
    }

    /// Returns the description of the first subject that `identity` is, or is in.
    pub(super) fn subject_of(&self, identity: &Identity) -> &str {
        let is_it = |subject: &Subject| match subject {
            Subject::User(name) => name == identity.name(),
            Subject::Group(name) => identity.is_in(name),
        };
        let found = self.subjects.iter().find(|(subject, _)| is_it(subject));
        found.map(|(_, shown)| shown.as_str()).unwrap_or_default()
    }
}

fn read_subject(subject: &Value, namespace: &str) -> Option<(Subject, String)> {
    let text = |field: &str| subject.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = (text("kind"), text("name"));
    let shown = |name: &str| format!("{kind} {}", windlass_schema::go_quote(name));
    match kind {
        "User" => Some((Subject::User(name.to_owned()), shown(name))),
        "Group" => Some((Subject::Group(name.to_owned()), shown(name))),
        "ServiceAccount" => {
            let own = text("namespace");
            let namespace = if own.is_empty() { namespace } else { own };
            let user = Subject::User(service_account_name(namespace, name));
            // Name and namespace stand in this order in the real server's reasons.
            (!namespace.is_empty()).then(|| (user, shown(&format!("{name}/{namespace}"))))
        }
        _ => None,
    }
}

/// Bindings by key and by subject.
#[derive(Default)]
pub(super) struct Bindings {
    by_key: HashMap<Arc<str>, Binding>,
    by_subject: HashMap<Subject, BTreeSet<Arc<str>>>,
}

impl Bindings {
    /// Returns the bindings of `identity` with keys that begin with `prefix`, sorted by key.
    pub(super) fn of<'a>(
        &'a self,
        identity: &Identity,
        prefix: &'a str,
    ) -> impl Iterator<Item = &'a Binding> + use<'a> {
        let groups = identity.groups().iter().map(|group| Subject::Group(group.clone()));
        let subjects = std::iter::once(Subject::User(identity.name().to_owned())).chain(groups);
        let mut keys: Vec<&'a Arc<str>> = Vec::new();
        for subject in subjects {
            if let Some(found) = self.by_subject.get(&subject) {
                let from: Arc<str> = prefix.into();
                keys.extend(found.range(from..).take_while(|key| key.starts_with(prefix)));
            }
        }
        keys.sort_unstable();
        keys.dedup();
        keys.into_iter().filter_map(|key| self.by_key.get(key))
    }
}

impl Index for Bindings {
    fn insert(&mut self, key: &Arc<str>, object: &Stored) {
        let binding = Binding::read(&object.value());
        for (subject, _) in &binding.subjects {
            self.by_subject.entry(subject.clone()).or_default().insert(Arc::clone(key));
        }
        self.by_key.insert(Arc::clone(key), binding);
    }

    fn remove(&mut self, key: &str) {
        let Some(binding) = self.by_key.remove(key) else { return };
        for (subject, _) in &binding.subjects {
            if let Some(keys) = self.by_subject.get_mut(subject) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_subject.remove(subject);
                }
            }
        }
    }
}

/// All roles and bindings.
pub(super) struct Policy {
    pub(super) roles: Followed<Roles>,
    pub(super) cluster_roles: Followed<Roles>,
    pub(super) bindings: Followed<Bindings>,
    pub(super) cluster_bindings: Followed<Bindings>,
}

impl Policy {
    pub(super) fn new() -> Self {
        Self {
            roles: Followed::new("roles"),
            cluster_roles: Followed::new("clusterroles"),
            bindings: Followed::new("rolebindings"),
            cluster_bindings: Followed::new("clusterrolebindings"),
        }
    }

    pub(super) fn is_current(&self, view: &View) -> bool {
        self.roles.is_current(view)
            && self.cluster_roles.is_current(view)
            && self.bindings.is_current(view)
            && self.cluster_bindings.is_current(view)
    }

    pub(super) fn follow(&mut self, store: &Store, view: &View) {
        self.roles.follow(store, view);
        self.cluster_roles.follow(store, view);
        self.bindings.follow(store, view);
        self.cluster_bindings.follow(store, view);
    }

    /// Returns the rules of the role that a binding in `namespace` refers to.
    ///
    /// # Errors
    /// The role does not exist, in the words of the real server.
    pub(super) fn rules(&self, role: &RoleRef, namespace: &str) -> Result<&[Rule], String> {
        let (found, resource) = match role.kind.as_str() {
            "Role" => (self.roles.index.rules(&format!("{namespace}/{}", role.name)), "role"),
            "ClusterRole" => (self.cluster_roles.index.rules(&role.name), "clusterrole"),
            kind => {
                return Err(format!("unsupported role reference kind: {}", windlass_schema::go_quote(kind)));
            }
        };
        found.ok_or_else(|| format!("{resource}.{GROUP} {} not found", windlass_schema::go_quote(&role.name)))
    }
}

impl<T> std::ops::Deref for Followed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.index
    }
}
