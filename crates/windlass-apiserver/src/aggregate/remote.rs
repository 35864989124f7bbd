//! The APIServices whose group versions an extension server answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::meta;
use crate::store::{ResourceId, View};
use crate::webhook::Endpoint;

/// The port of a service that an APIService does not name.
const DEFAULT_PORT: u16 = 443;

/// A group version that an extension server answers.
#[derive(Debug)]
pub(crate) struct Remote {
    /// The name of the APIService.
    pub(super) name: String,
    /// The uid of the APIService.
    pub(super) uid: String,
    pub(super) group: String,
    pub(super) version: String,
    pub(super) namespace: String,
    pub(super) service: String,
    pub(super) port: u16,
    /// The address of the service, and the trusted certificates.
    pub(super) endpoint: Endpoint,
    /// True if the condition `Available` is true.
    pub(super) is_available: bool,
    /// The priorities of the group and of the version in discovery.
    pub(super) priorities: (i64, i64),
}

impl Remote {
    pub(super) fn of(object: &Value) -> Option<Self> {
        let spec = &object["spec"];
        let service = spec.get("service").filter(|service| service.is_object())?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
        let is_available =
            |condition: &Value| condition["type"] == "Available" && condition["status"] == "True";
        let config = json!({
            "service": {"namespace": service["namespace"], "name": service["name"], "port": service["port"]},
            "caBundle": spec["caBundle"],
        });
        let priority = |name: &str| spec[name].as_i64().unwrap_or_default();
        Some(Self {
            name: meta::name(object).to_owned(),
            uid: meta::text(object, "uid").to_owned(),
            group: text(&spec["group"]),
            version: text(&spec["version"]),
            namespace: text(&service["namespace"]),
            service: text(&service["name"]),
            port: service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(DEFAULT_PORT),
            endpoint: Endpoint::of(&config).unverified(spec["insecureSkipTLSVerify"] == true),
            is_available: conditions.into_iter().any(is_available),
            priorities: (priority("groupPriorityMinimum"), priority("versionPriority")),
        })
    }

    /// Returns whether `other` is read from the same APIService, with the same address and certificates.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.uid == other.uid && self.endpoint.id() == other.endpoint.id()
    }

    /// Returns the group and version.
    pub(super) fn key(&self) -> (String, String) {
        (self.group.clone(), self.version.clone())
    }

    /// Returns the path of the discovery document of the group version.
    pub(super) fn path(&self) -> String {
        match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        }
    }
}

/// The group versions of extension servers, and the priorities of all groups.
#[derive(Default)]
pub(super) struct Remotes {
    by_version: BTreeMap<(String, String), Arc<Remote>>,
    /// The largest `groupPriorityMinimum` of the APIServices of a group.
    priorities: BTreeMap<String, i64>,
}

impl Remotes {
    /// Reads the APIServices of a view.
    pub(super) fn of(view: &View, api_services: &ResourceId) -> Self {
        let mut remotes = Self::default();
        for (_, stored) in view.range(api_services, None) {
            let object = stored.value();
            let group = object["spec"]["group"].as_str().unwrap_or_default().to_owned();
            let priority = object["spec"]["groupPriorityMinimum"].as_i64().unwrap_or_default();
            let known = remotes.priorities.entry(group).or_default();
            *known = priority.max(*known);
            if let Some(remote) = Remote::of(&object) {
                remotes.by_version.insert(remote.key(), Arc::new(remote));
            }
        }
        remotes
    }

    pub(super) fn get(&self, group: &str, version: &str) -> Option<&Arc<Remote>> {
        self.by_version.get(&(group.to_owned(), version.to_owned()))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Remote>> {
        self.by_version.values()
    }

    /// Returns the priority of a group in discovery.
    pub(super) fn priority(&self, group: &str) -> i64 {
        self.priorities.get(group).copied().unwrap_or_default()
    }
}
