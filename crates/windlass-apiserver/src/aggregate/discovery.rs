//! The resources of a group version in the discovery documents of an extension server, within limits.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::remote::Remote;

/// The limit of the resources and subresources of a group version. Servers of custom metrics have thousands.
const MAX_RESOURCES: usize = 10_000;
/// The limit of all texts of a resource or subresource together, in bytes.
const MAX_TEXT: usize = 4 << 10;
/// The limit of the document of a group version, in bytes.
const MAX_VERSION: usize = 4 << 20;

/// The form of a discovery document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// An `APIGroupDiscoveryList` with all groups of the server.
    Aggregated,
    /// The `APIResourceList` of a group version.
    ResourceList,
}

/// The resources of a group version.
#[derive(Debug)]
pub(super) struct Resources {
    /// The list of resources as JSON, in the form of aggregated discovery: as values, the list takes ten times the memory.
    pub(super) json: Box<RawValue>,
    /// The number of resources and subresources beyond the limits.
    pub(super) left_out: usize,
}

impl Resources {
    /// Reads the resources of the group version of `remote` in a document. `None` if the document does not describe the group version.
    ///
    /// # Errors
    /// The document is no JSON, or the values take too much memory. The error has the reason.
    pub(super) fn read(form: Form, document: &[u8], remote: &Remote) -> Result<Option<Self>, String> {
        let (document, _) = crate::wire::from_json_with_duplicates(document)?;
        let resources = match form {
            Form::Aggregated => in_groups(&document, remote).map(Collected::aggregated),
            Form::ResourceList => {
                document["resources"].as_array().map(|list| Collected::listed(list, remote))
            }
        };
        resources.map(Collected::into_resources).transpose()
    }
}

/// Returns the resources of a group version in an aggregated document.
fn in_groups<'a>(document: &'a Value, remote: &Remote) -> Option<&'a [Value]> {
    (document["kind"] == "APIGroupDiscoveryList").then_some(())?;
    let group = list(&document["items"]).iter().find(|group| group["metadata"]["name"] == *remote.group)?;
    let version = list(&group["versions"]).iter().find(|version| version["version"] == *remote.version)?;
    Some(list(&version["resources"]))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<&str> {
    list(value).iter().filter_map(Value::as_str).collect()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceEntry<'a> {
    resource: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_kind: Option<ResponseKind<'a>>,
    scope: &'a str,
    singular_resource: &'a str,
    verbs: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    short_names: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categories: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<SubresourceEntry<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubresourceEntry<'a> {
    subresource: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_kind: Option<ResponseKind<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    accepted_types: Vec<ResponseKind<'a>>,
    verbs: Vec<&'a str>,
}

#[derive(Serialize)]
struct ResponseKind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

impl<'a> ResponseKind<'a> {
    /// Reads a kind of an aggregated document.
    fn of(kind: &'a Value) -> Option<Self> {
        kind.is_object().then(|| Self {
            group: text(&kind["group"]),
            version: text(&kind["version"]),
            kind: text(&kind["kind"]),
        })
    }

    /// Reads the kind of an entry of a resource list. An entry without a group or version has the group or version of the list.
    fn of_entry(entry: &'a Value, remote: &'a Remote) -> Self {
        let or_own = |field: &str, own: &'a str| match text(&entry[field]) {
            "" => own,
            other => other,
        };
        Self {
            group: or_own("group", &remote.group),
            version: or_own("version", &remote.version),
            kind: text(&entry["kind"]),
        }
    }
}

/// The resources of a group version within the limits.
#[derive(Default)]
struct Collected<'a> {
    resources: Vec<ResourceEntry<'a>>,
    /// The number of resources and subresources.
    count: usize,
    left_out: usize,
}

impl<'a> Collected<'a> {
    /// Reads the resources of an aggregated document.
    fn aggregated(resources: &'a [Value]) -> Self {
        let mut collected = Self::default();
        for found in resources {
            let resource = ResourceEntry {
                resource: text(&found["resource"]),
                response_kind: ResponseKind::of(&found["responseKind"]),
                scope: text(&found["scope"]),
                singular_resource: text(&found["singularResource"]),
                verbs: texts(&found["verbs"]),
                short_names: texts(&found["shortNames"]),
                categories: texts(&found["categories"]),
                subresources: Vec::new(),
            };
            let subresources = list(&found["subresources"]);
            if !collected.has_room(&resource) {
                collected.left_out += subresources.len();
                continue;
            }
            let at = collected.push(resource);
            for found in subresources {
                collected.push_below(
                    at,
                    SubresourceEntry {
                        subresource: text(&found["subresource"]),
                        response_kind: ResponseKind::of(&found["responseKind"]),
                        accepted_types: list(&found["acceptedTypes"])
                            .iter()
                            .filter_map(ResponseKind::of)
                            .collect(),
                        verbs: texts(&found["verbs"]),
                    },
                );
            }
        }
        collected
    }

    /// Reads the entries of a resource list.
    fn listed(entries: &'a [Value], remote: &'a Remote) -> Self {
        let mut collected = Self::default();
        let mut places: HashMap<&str, usize> = HashMap::new();
        let (below, resources): (Vec<_>, Vec<_>) =
            entries.iter().partition(|entry| text(&entry["name"]).contains('/'));
        for entry in resources {
            let resource = ResourceEntry {
                singular_resource: text(&entry["singularName"]),
                verbs: texts(&entry["verbs"]),
                short_names: texts(&entry["shortNames"]),
                categories: texts(&entry["categories"]),
                ..ResourceEntry::named(text(&entry["name"]), ResponseKind::of_entry(entry, remote), entry)
            };
            if collected.has_room(&resource) {
                places.insert(resource.resource, collected.push(resource));
            }
        }
        for entry in below {
            let Some((parent, name)) = text(&entry["name"]).split_once('/') else { continue };
            let kind = ResponseKind::of_entry(entry, remote);
            let mut at = places.get(parent).copied();
            if at.is_none() {
                // A server of custom metrics lists subresources alone.
                let empty = ResponseKind { group: "", version: "", kind: "" };
                let resource = ResourceEntry::named(parent, empty, entry);
                if collected.has_room(&resource) {
                    at = Some(collected.push(resource));
                }
            }
            let Some(at) = at else { continue };
            places.insert(parent, at);
            let verbs = texts(&entry["verbs"]);
            let accepted_types = Vec::new();
            collected.push_below(
                at,
                SubresourceEntry { subresource: name, response_kind: Some(kind), accepted_types, verbs },
            );
        }
        collected
    }

    /// Returns whether an entry is within the limits. Counts the entry as left out otherwise.
    fn has_room(&mut self, entry: &impl Texts) -> bool {
        let has_room = self.count < MAX_RESOURCES && entry.bytes() <= MAX_TEXT;
        self.left_out += usize::from(!has_room);
        has_room
    }

    /// Adds a resource, and returns the place of the resource.
    fn push(&mut self, resource: ResourceEntry<'a>) -> usize {
        self.count += 1;
        self.resources.push(resource);
        self.resources.len() - 1
    }

    fn push_below(&mut self, at: usize, subresource: SubresourceEntry<'a>) {
        if self.has_room(&subresource)
            && let Some(resource) = self.resources.get_mut(at)
        {
            self.count += 1;
            resource.subresources.push(subresource);
        }
    }

    fn into_resources(self) -> Result<Resources, String> {
        let json = serde_json::value::to_raw_value(&self.resources).map_err(|error| error.to_string())?;
        if json.get().len() > MAX_VERSION {
            return Err(format!(
                "the resources of the group version take more than {} MiB",
                MAX_VERSION >> 20
            ));
        }
        Ok(Resources { json, left_out: self.left_out })
    }
}

impl<'a> ResourceEntry<'a> {
    /// Returns a resource without verbs, with the scope of an entry of a resource list.
    fn named(name: &'a str, kind: ResponseKind<'a>, entry: &Value) -> Self {
        Self {
            resource: name,
            response_kind: Some(kind),
            scope: if entry["namespaced"] == true { "Namespaced" } else { "Cluster" },
            singular_resource: "",
            verbs: Vec::new(),
            short_names: Vec::new(),
            categories: Vec::new(),
            subresources: Vec::new(),
        }
    }
}

/// The size of the texts of an entry.
trait Texts {
    /// Returns an estimate of the size of the entry in JSON, in bytes.
    fn bytes(&self) -> usize;
}

/// The size of a text in a list with quotes and comma, in bytes.
fn bytes_of(texts: &[&str]) -> usize {
    texts.iter().map(|text| text.len() + 3).sum()
}

impl Texts for ResponseKind<'_> {
    fn bytes(&self) -> usize {
        bytes_of(&[self.group, self.version, self.kind])
    }
}

impl Texts for ResourceEntry<'_> {
    fn bytes(&self) -> usize {
        let lists = [&self.verbs, &self.short_names, &self.categories].map(|list| bytes_of(list));
        let kind = self.response_kind.as_ref().map_or(0, Texts::bytes);
        bytes_of(&[self.resource, self.scope, self.singular_resource]) + lists.iter().sum::<usize>() + kind
    }
}

impl Texts for SubresourceEntry<'_> {
    fn bytes(&self) -> usize {
        let kinds = self.response_kind.iter().chain(&self.accepted_types).map(Texts::bytes).sum::<usize>();
        self.subresource.len() + bytes_of(&self.verbs) + kinds
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn remote() -> Remote {
        let spec = json!({"group": "a.test", "version": "v1", "service": {"name": "a", "namespace": "b"}});
        Remote::of(&json!({"metadata": {"name": "v1.a.test"}, "spec": spec})).unwrap()
    }

    fn read(form: Form, document: &Value) -> (Value, usize) {
        let found = Resources::read(form, document.to_string().as_bytes(), &remote()).unwrap().unwrap();
        (serde_json::from_str(found.json.get()).unwrap(), found.left_out)
    }

    fn aggregated(resources: &Value) -> Value {
        let versions = json!([{"version": "v0"}, {"version": "v1", "resources": resources}]);
        let items =
            json!([{"metadata": {"name": "b.test"}}, {"metadata": {"name": "a.test"}, "versions": versions}]);
        json!({"kind": "APIGroupDiscoveryList", "items": items})
    }

    #[test]
    fn resources_of_an_aggregated_document_keep_their_fields() {
        let kind = json!({"group": "", "version": "", "kind": "Thing"});
        let resource = json!({
            "resource": "things", "responseKind": kind, "scope": "Namespaced", "singularResource": "thing",
            "verbs": ["get"], "shortNames": ["t"], "categories": ["all"],
            "subresources": [{"subresource": "scale", "responseKind": kind, "acceptedTypes": [kind], "verbs": ["get"]}],
        });
        let mut sent = resource.clone();
        sent["unknown"] = json!("field");
        assert_eq!(read(Form::Aggregated, &aggregated(&json!([sent]))), (json!([resource]), 0));
    }

    #[test]
    fn a_resource_list_becomes_the_form_of_aggregated_discovery() {
        let entries = json!([
            {"name": "things/scale", "namespaced": true, "kind": "Scale", "group": "autoscaling", "verbs": ["get"]},
            {"name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing", "verbs": ["list"]},
            {"name": "pods/requests", "namespaced": true, "kind": "MetricValueList", "verbs": null},
        ]);
        let kind = |group: &str, kind: &str| json!({"group": group, "version": "v1", "kind": kind});
        let scale = kind("autoscaling", "Scale");
        let requests = kind("a.test", "MetricValueList");
        let expected = json!([
            {
                "resource": "things", "singularResource": "thing", "scope": "Namespaced", "verbs": ["list"],
                "responseKind": kind("a.test", "Thing"),
                "subresources": [{"subresource": "scale", "responseKind": scale, "verbs": ["get"]}],
            },
            {
                "resource": "pods", "singularResource": "", "scope": "Namespaced", "verbs": [],
                "responseKind": {"group": "", "version": "", "kind": ""},
                "subresources": [{"subresource": "requests", "responseKind": requests, "verbs": []}],
            },
        ]);
        assert_eq!(read(Form::ResourceList, &json!({"resources": entries})), (expected, 0));
    }

    #[test]
    fn resources_beyond_the_limits_are_left_out() {
        let long = "x".repeat(MAX_TEXT);
        let mut entries = vec![json!({"name": long}), json!({"name": "a", "verbs": [long]})];
        entries.push(json!({"name": "b", "verbs": vec!["v"; MAX_TEXT]}));
        entries.extend((0..MAX_RESOURCES).map(|number| json!({"name": format!("r{number}")})));
        entries.extend(["r0/status", "r1/status"].map(|name| json!({"name": name})));
        let (found, left_out) = read(Form::ResourceList, &json!({"resources": entries}));
        assert_eq!((found.as_array().unwrap().len(), left_out), (MAX_RESOURCES, 5));

        let subresources = vec![json!({"subresource": "s"}); MAX_RESOURCES];
        let resources =
            json!([{"resource": "a", "subresources": subresources}, {"resource": "b", "subresources": [{}]}]);
        let (found, left_out) = read(Form::Aggregated, &aggregated(&resources));
        assert_eq!((found.as_array().unwrap().len(), left_out), (1, 3));
    }

    #[test]
    fn a_document_that_takes_too_much_memory_is_refused() {
        let long = "x".repeat(MAX_TEXT / 2);
        let resources: Vec<Value> =
            (0..3_000).map(|number| json!({"resource": format!("{long}{number}")})).collect();
        let document = aggregated(&resources.into()).to_string();
        let error = Resources::read(Form::Aggregated, document.as_bytes(), &remote()).unwrap_err();
        assert_eq!(error, "the resources of the group version take more than 4 MiB");
        let many = format!(r#"{{"resources":[{}]}}"#, vec![r#"{"":0}"#; 200_000].join(","));
        let error = Resources::read(Form::ResourceList, many.as_bytes(), &remote()).unwrap_err();
        assert!(error.contains("too many values"), "{error}");
        let deep = "[".repeat(100_000);
        assert!(Resources::read(Form::ResourceList, deep.as_bytes(), &remote()).is_err());
    }

    #[test]
    fn a_document_without_the_group_version_has_no_resources() {
        for (form, document) in [
            (Form::Aggregated, json!({"kind": "APIGroupList"})),
            (
                Form::Aggregated,
                json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "b.test"}}]}),
            ),
            (Form::ResourceList, json!([])),
        ] {
            let found = Resources::read(form, document.to_string().as_bytes(), &remote()).unwrap();
            assert!(found.is_none(), "{form:?} {document}");
        }
    }
}
