//! The rights of an operator, merged.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::{
    Access, Permission, Scope, Target, Verb,
    access::{AccessObject, in_group},
    rules,
};

/// The place where a right holds. The place decides the role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoleScope {
    /// Everywhere: a ClusterRole with a ClusterRoleBinding.
    Cluster,
    /// In the namespace that the operator runs in: a Role there.
    Operator,
    /// In a namespace: a Role there.
    Namespace(String),
}

/// A single right: a verb on a resource, object or path, in a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Right {
    pub(super) place: RoleScope,
    pub(super) object: RightObject,
    pub(super) verb: Verb,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum RightObject {
    /// With the subresource, in the form of a rule.
    Resource {
        group: String,
        resource: String,
        name: Option<String>,
    },
    Url(String),
}

/// The rights of an operator: merged, sorted, and without rights that a wider right includes.
///
/// [`Manager::permissions`](crate::Manager::permissions) returns the rights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    rights: BTreeMap<Right, Needs>,
}

/// The parts that need a right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Needs {
    by: BTreeSet<String>,
    optional: bool,
}

impl Permissions {
    /// Merges the permissions that the parts of a manager need. `namespaces` are the manager's; none stands for all.
    pub(crate) fn merge<'a>(
        needed: impl IntoIterator<Item = (&'a str, Permission)>,
        namespaces: &[String],
    ) -> Self {
        let mut rights = BTreeMap::new();
        for (part, permission) in needed {
            for right in rights_of(&permission, namespaces) {
                add(&mut rights, right, part, permission.optional);
            }
        }
        Self { rights: without_included(rights) }
    }

    /// Returns the rules of the ClusterRole.
    pub fn cluster_role(&self) -> Vec<PolicyRule> {
        self.rules_of(&RoleScope::Cluster)
    }

    /// Returns the rules of the Role in the namespace that the operator runs in.
    pub fn operator_role(&self) -> Vec<PolicyRule> {
        self.rules_of(&RoleScope::Operator)
    }

    /// Returns the rules of the Roles in other namespaces, by namespace.
    pub fn roles(&self) -> BTreeMap<String, Vec<PolicyRule>> {
        let namespaces: BTreeSet<_> = self.rights.keys().map(|right| &right.place).collect();
        let of = |place: &RoleScope| match place {
            RoleScope::Namespace(namespace) => Some((namespace.clone(), self.rules_of(place))),
            RoleScope::Cluster | RoleScope::Operator => None,
        };
        namespaces.into_iter().filter_map(of).collect()
    }

    fn rules_of(&self, place: &RoleScope) -> Vec<PolicyRule> {
        rules::rules(self.rights.keys().filter(|right| right.place == *place))
    }

    /// Returns the single rights, sorted.
    pub fn rights(&self) -> impl Iterator<Item = &Right> {
        self.rights.keys()
    }

    /// Returns the rights that this part needs, and no other.
    pub(crate) fn only_of(&self, part: &str) -> Self {
        self.filtered(|needs| needs.by.iter().all(|by| by == part))
    }

    /// Returns the rights of all parts except these parts.
    pub(crate) fn without(&self, parts: &[&str]) -> Self {
        self.filtered(|needs| needs.by.iter().any(|by| !parts.contains(&by.as_str())))
    }

    fn filtered(&self, keep: impl Fn(&Needs) -> bool) -> Self {
        let kept = self.rights.iter().filter(|(_, needs)| keep(needs));
        Self { rights: kept.map(|(right, needs)| (right.clone(), needs.clone())).collect() }
    }

    /// Returns the names of the controllers and runnables that need a right, separated by commas.
    pub fn needed_by(&self, right: &Right) -> String {
        let needs = self.rights.get(right);
        needs
            .map(|needs| needs.by.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
            .unwrap_or_default()
    }

    /// Returns whether a right is needed only sometimes. See [`Permission::optional`].
    pub fn is_optional(&self, right: &Right) -> bool {
        self.rights.get(right).is_some_and(|needs| needs.optional)
    }

    /// Returns the right that permits an access, if there is such a right. `operator` is the operator's own
    /// namespace.
    pub fn granting(&self, access: &Access, operator: &str) -> Option<&Right> {
        self.rights.keys().find(|right| right.grants(access, Some(operator)))
    }

    /// Returns the rights that permit no access of `accesses`, without rights that are needed only sometimes.
    pub fn unused<'a>(&self, accesses: impl IntoIterator<Item = &'a Access>, operator: &str) -> Vec<&Right> {
        let accesses: Vec<_> = accesses.into_iter().collect();
        let is_used = |right: &Right| accesses.iter().any(|access| right.grants(access, Some(operator)));
        let rights = self.rights.iter().filter(|(right, needs)| !needs.optional && !is_used(right));
        rights.map(|(right, _)| right).collect()
    }

    /// Returns whether a right permits an access. The operator may run in the namespace of the access.
    pub(crate) fn covers_somewhere(&self, access: &Access) -> bool {
        self.rights.keys().any(|right| right.grants(access, None))
    }
}

impl Right {
    /// Returns the place of the right.
    pub fn place(&self) -> &RoleScope {
        &self.place
    }

    /// Returns the verb.
    pub fn verb(&self) -> Verb {
        self.verb
    }

    /// Returns the API group and the resource, with the subresource in the form of a rule; `None` for a path
    /// without a resource.
    pub fn resource(&self) -> Option<(&str, &str)> {
        match &self.object {
            RightObject::Resource { group, resource, .. } => Some((group, resource)),
            RightObject::Url(_) => None,
        }
    }

    /// Returns the name of the object of a right on a single object.
    pub fn name(&self) -> Option<&str> {
        match &self.object {
            RightObject::Resource { name, .. } => name.as_deref(),
            RightObject::Url(_) => None,
        }
    }

    /// Returns whether the right permits an access. Without `operator`, any namespace may be the operator's
    /// own namespace.
    fn grants(&self, access: &Access, operator: Option<&str>) -> bool {
        if self.verb != access.verb {
            return false;
        }
        match (&self.object, &access.object) {
            (RightObject::Url(pattern), AccessObject::Url(path)) => match pattern.strip_suffix('*') {
                Some(start) => path.starts_with(start),
                None => pattern == path,
            },
            (
                RightObject::Resource { group, resource, name },
                AccessObject::Resource { group: in_group, resource: of, namespace, name: named },
            ) => {
                let here = match &self.place {
                    RoleScope::Cluster => true,
                    RoleScope::Operator => {
                        namespace.is_some()
                            && operator.is_none_or(|operator| namespace.as_deref() == Some(operator))
                    }
                    RoleScope::Namespace(place) => namespace.as_ref() == Some(place),
                };
                here && group == in_group && resource == of && (name.is_none() || name == named)
            }
            _ => false,
        }
    }

    /// Returns whether this right permits everything that another right permits.
    fn includes(&self, other: &Self) -> bool {
        let objects = match (&self.object, &other.object) {
            (
                RightObject::Resource { group, resource, name: None },
                RightObject::Resource { group: other_group, resource: other_resource, .. },
            ) => group == other_group && resource == other_resource,
            (one, other) => one == other,
        };
        let places = self.place == RoleScope::Cluster || self.place == other.place;
        self.verb == other.verb && objects && places && self != other
    }
}

/// Adds a right that a part needs.
fn add(rights: &mut BTreeMap<Right, Needs>, right: Right, part: &str, optional: bool) {
    let needs = rights.entry(right).or_insert_with(|| Needs { by: BTreeSet::new(), optional: true });
    needs.by.insert(part.to_owned());
    needs.optional &= optional;
}

/// Returns the single rights of a permission.
fn rights_of(permission: &Permission, namespaces: &[String]) -> Vec<Right> {
    let places = match &permission.scope {
        Scope::Cluster => vec![RoleScope::Cluster],
        Scope::Operator => vec![RoleScope::Operator],
        Scope::Manager if namespaces.is_empty() => vec![RoleScope::Cluster],
        Scope::Manager => namespaces.iter().cloned().map(RoleScope::Namespace).collect(),
        Scope::Namespaces(namespaces) => namespaces.iter().cloned().map(RoleScope::Namespace).collect(),
    };
    let objects: Vec<RightObject> = match &permission.target {
        Target::Url(path) => vec![RightObject::Url(path.clone())],
        Target::Resource { group, resource, subresource, names } => {
            let resource = match subresource {
                Some(subresource) => format!("{resource}/{subresource}"),
                None => resource.clone(),
            };
            let object =
                |name| RightObject::Resource { group: group.clone(), resource: resource.clone(), name };
            if names.is_empty() {
                vec![object(None)]
            } else {
                names.iter().map(|name| object(Some(name.clone()))).collect()
            }
        }
    };
    let mut rights = Vec::new();
    for place in places {
        for object in &objects {
            for verb in &permission.verbs {
                rights.push(Right { place: place.clone(), object: object.clone(), verb: *verb });
            }
        }
    }
    rights
}

/// Removes the rights that a wider right includes. The wider right inherits the narrower right's reasons.
fn without_included(rights: BTreeMap<Right, Needs>) -> BTreeMap<Right, Needs> {
    let mut kept = rights.clone();
    for (right, needs) in &rights {
        // Rights of the cluster come first: the widest right is found first, and no other right includes the
        // widest right.
        let Some(wider) = rights.keys().find(|wider| wider.includes(right)) else { continue };
        kept.remove(right);
        if let Some(wider) = kept.get_mut(wider) {
            wider.by.extend(needs.by.iter().cloned());
            wider.optional &= needs.optional;
        }
    }
    kept
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.verb)?;
        match &self.object {
            RightObject::Url(path) => f.write_str(path)?,
            RightObject::Resource { group, resource, name } => {
                f.write_str(&in_group(group, resource))?;
                if let Some(name) = name {
                    write!(f, " {name:?}")?;
                }
            }
        }
        match &self.place {
            RoleScope::Cluster => Ok(()),
            RoleScope::Operator => f.write_str(" in the operator's namespace"),
            RoleScope::Namespace(namespace) => write!(f, " in namespace {namespace}"),
        }
    }
}
