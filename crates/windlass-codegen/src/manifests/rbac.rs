//! `config/rbac`: the rights of the operator, and roles for people.

use k8s_openapi::{
    api::{
        core::v1::ServiceAccount,
        rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde_json::Value;

use super::{
    options::{Names, Options},
    tree::{Folder, object},
};
use crate::groups::group_modules;
use crate::{Inventory, Rights};

/// The name of the folder.
pub(super) const FOLDER: &str = "rbac";

const API_GROUP: &str = "rbac.authorization.k8s.io";

/// Returns `config/rbac`: the service account, the roles of the service account, and a role of
/// administrators, editors and viewers for each kind.
pub(super) fn folder(inventory: &Inventory, options: &Options, names: &Names) -> Folder {
    let own = RoleSet::new(names, &options.role_name, &inventory.rights);
    let mut folder = Folder::new(FOLDER)
        .file("service_account.yaml", vec![service_account(names)])
        .file("role.yaml", own.roles())
        .file("role_binding.yaml", own.bindings());
    if let Some(election) = &inventory.election {
        let roles = RoleSet::new(names, "leader-election-role", &election.rights);
        folder = folder
            .file("leader_election_role.yaml", roles.roles())
            .file("leader_election_role_binding.yaml", roles.bindings());
    }
    if let Some(metrics) = &inventory.metrics {
        let roles = RoleSet::new(names, "metrics-auth-role", &metrics.rights);
        folder = folder
            .file("metrics_auth_role.yaml", roles.roles())
            .file("metrics_auth_role_binding.yaml", roles.bindings())
            .file("metrics_reader_role.yaml", vec![metrics_reader(names)]);
    }
    for (file, role) in helper_roles(&inventory.crds, names) {
        folder = folder.file(file, vec![role]);
    }
    folder
}

/// Returns the name of the operator's service account.
pub(super) fn account_name(names: &Names) -> String {
    names.of("controller-manager")
}

fn service_account(names: &Names) -> Value {
    object(&ServiceAccount {
        metadata: metadata(names, account_name(names), Some(&names.namespace)),
        ..ServiceAccount::default()
    })
}

pub(super) fn metadata(names: &Names, name: String, namespace: Option<&str>) -> ObjectMeta {
    ObjectMeta {
        labels: Some(names.labels()),
        name: Some(name),
        namespace: namespace.map(ToOwned::to_owned),
        ..ObjectMeta::default()
    }
}

/// The roles for one set of rights: a ClusterRole, a Role in the operator's namespace, and Roles in other
/// namespaces.
struct RoleSet<'a> {
    names: &'a Names,
    /// With the name of the project.
    name: String,
    cluster: &'a [PolicyRule],
    /// By namespace.
    namespaced: Vec<(String, Vec<PolicyRule>)>,
}

impl<'a> RoleSet<'a> {
    fn new(names: &'a Names, name: &str, rights: &'a Rights) -> Self {
        // The operator's namespace may be named like any other.
        let here = rights.namespaces.get(&names.namespace).into_iter().flatten();
        let mut own = rights.operator.clone();
        own.extend(here.filter(|rule| !rights.operator.contains(rule)).cloned());
        let mut namespaced = vec![(names.namespace.clone(), own)];
        let others = rights.namespaces.iter().filter(|(namespace, _)| **namespace != names.namespace);
        namespaced.extend(others.map(|(namespace, rules)| (namespace.clone(), rules.clone())));
        namespaced.retain(|(_, rules)| !rules.is_empty());
        Self { names, name: names.of(name), cluster: &rights.cluster, namespaced }
    }

    fn roles(&self) -> Vec<Value> {
        let cluster = (!self.cluster.is_empty()).then(|| {
            object(&ClusterRole {
                metadata: metadata(self.names, self.name.clone(), None),
                rules: Some(self.cluster.to_vec()),
                aggregation_rule: None,
            })
        });
        let role = |(namespace, rules): &(String, Vec<PolicyRule>)| {
            object(&Role {
                metadata: metadata(self.names, self.name.clone(), Some(namespace)),
                rules: Some(rules.clone()),
            })
        };
        cluster.into_iter().chain(self.namespaced.iter().map(role)).collect()
    }

    fn bindings(&self) -> Vec<Value> {
        let name = format!("{}binding", self.name);
        let cluster = (!self.cluster.is_empty()).then(|| {
            object(&ClusterRoleBinding {
                metadata: metadata(self.names, name.clone(), None),
                role_ref: self.role_ref("ClusterRole"),
                subjects: Some(vec![self.subject()]),
            })
        });
        let binding = |(namespace, _): &(String, Vec<PolicyRule>)| {
            object(&RoleBinding {
                metadata: metadata(self.names, name.clone(), Some(namespace)),
                role_ref: self.role_ref("Role"),
                subjects: Some(vec![self.subject()]),
            })
        };
        cluster.into_iter().chain(self.namespaced.iter().map(binding)).collect()
    }

    fn role_ref(&self, kind: &str) -> RoleRef {
        RoleRef { api_group: Some(API_GROUP.to_owned()), kind: kind.to_owned(), name: self.name.clone() }
    }

    fn subject(&self) -> Subject {
        Subject {
            api_group: None,
            kind: "ServiceAccount".to_owned(),
            name: account_name(self.names),
            namespace: Some(self.names.namespace.clone()),
        }
    }
}

/// Returns the role of readers of the metrics, such as Prometheus.
fn metrics_reader(names: &Names) -> Value {
    let rule = PolicyRule {
        non_resource_urls: Some(vec!["/metrics".to_owned()]),
        verbs: vec!["get".to_owned()],
        ..PolicyRule::default()
    };
    object(&ClusterRole {
        metadata: metadata(names, names.of("metrics-reader"), None),
        rules: Some(vec![rule]),
        aggregation_rule: None,
    })
}

/// The rights of people on the objects of a kind: the end of the role's name, and the verbs.
const HELPERS: [(&str, &[&str]); 3] = [
    ("admin", &["*"]),
    ("editor", &["create", "delete", "get", "list", "patch", "update", "watch"]),
    ("viewer", &["get", "list", "watch"]),
];

/// Returns the roles for people, with the names of the files.
fn helper_roles(crds: &[CustomResourceDefinition], names: &Names) -> Vec<(String, Value)> {
    let mut kinds: Vec<(&str, &str, &str)> = crds
        .iter()
        .map(|crd| (crd.spec.names.kind.as_str(), crd.spec.group.as_str(), crd.spec.names.plural.as_str()))
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut roles = Vec::new();
    for (kind, group, plural) in &kinds {
        let groups = kinds.iter().filter(|(other, ..)| other == kind).map(|(_, group, _)| *group);
        let modules = group_modules(groups);
        let mut stem = kind.to_lowercase();
        if modules.len() > 1 {
            stem = format!("{}-{stem}", modules[*group].trim_end_matches('_').replace('_', "-"));
        }
        for (role, verbs) in HELPERS {
            let name = names.of(&format!("{stem}-{role}-role"));
            let rules = vec![rule(group, plural, verbs), rule(group, &format!("{plural}/status"), &["get"])];
            let metadata = metadata(names, name, None);
            let role_object = object(&ClusterRole { metadata, rules: Some(rules), aggregation_rule: None });
            roles.push((format!("{}_{role}_role.yaml", stem.replace('-', "_")), role_object));
        }
    }
    roles
}

fn rule(group: &str, resource: &str, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    }
}
