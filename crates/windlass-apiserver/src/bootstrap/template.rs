//! The objects of a new server, prepared once per process.

use std::sync::OnceLock;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{TIME, UID, cluster, flow_control, ownership, policy};
use crate::api_services;
use crate::cluster_roles;
use crate::meta;
use crate::state::State;
use crate::store::{Draft, ResourceId};

/// A complete object, except for uid and time.
pub(super) struct Template {
    pub(super) id: ResourceId,
    pub(super) key: String,
    pub(super) draft: Draft,
}

/// Returns the templates of all objects of a server with the default settings. The first server of the
/// process makes the templates.
pub(super) fn shared(state: &State) -> &'static [Template] {
    static TEMPLATES: OnceLock<Vec<Template>> = OnceLock::new();
    TEMPLATES.get_or_init(|| all(state))
}

/// Makes the templates of all objects.
pub(super) fn all(state: &State) -> Vec<Template> {
    let objects = objects(state).into_iter();
    objects.filter_map(|(group, resource, object)| template(state, group, resource, object)).collect()
}

/// Returns all objects, with the group and resource of each object.
fn objects(state: &State) -> Vec<(&'static str, &'static str, Value)> {
    let mut objects = cluster::objects(state.service_range);
    let mut policy = policy::objects();
    cluster_roles::aggregate(&mut policy);
    let rbac = "rbac.authorization.k8s.io";
    objects.extend(policy.into_iter().map(|(resource, object)| (rbac, resource, object)));
    let flow_control = flow_control::objects().into_iter();
    objects.extend(flow_control.map(|(resource, object)| ("flowcontrol.apiserver.k8s.io", resource, object)));
    let services = api_services::of_builtin(&state.builtin, TIME).into_iter();
    objects.extend(services.map(|object| ("apiregistration.k8s.io", "apiservices", object)));
    objects
}

fn template(state: &State, group: &str, resource: &str, mut object: Value) -> Option<Template> {
    meta::set(&mut object, "uid", Some(json!(UID)));
    meta::set(&mut object, "creationTimestamp", Some(json!(TIME)));
    let resource = state.builtin.resource(group, "v1", resource)?;
    ownership::record(state, resource, &mut object, Timestamp::UNIX_EPOCH);
    Some(Template {
        id: resource.storage.clone(),
        key: resource.key(meta::namespace(&object), meta::name(&object)),
        draft: resource.draft(&object, state.store.labels(), Timestamp::UNIX_EPOCH),
    })
}
