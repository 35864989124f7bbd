//! Groups, versions and resources, from discovery.

use serde_json::{Map, Value, json};

use super::ApiServer;
use crate::Result;

/// Returns `group/version` → resources, in the order of the server, without custom resources.
pub(super) fn collect(server: &ApiServer) -> Result<Map<String, Value>> {
    let custom = custom_groups(server)?;
    let mut versions = vec![("v1".to_owned(), "/api/v1".to_owned())];
    let groups = server.get("/apis")?;
    for group in groups["groups"].as_array().into_iter().flatten() {
        if custom.iter().any(|name| group["name"] == name.as_str()) {
            continue;
        }
        for version in group["versions"].as_array().into_iter().flatten() {
            let name = version["groupVersion"].as_str().unwrap_or_default().to_owned();
            let path = format!("/apis/{name}");
            versions.push((name, path));
        }
    }
    let mut out = Map::new();
    for (rank, (name, path)) in versions.into_iter().enumerate() {
        let list = server.get(&path)?;
        let resources: Vec<Value> = list["resources"].as_array().into_iter().flatten().map(row).collect();
        out.insert(name, json!({"rank": rank, "resources": resources}));
    }
    Ok(out)
}

fn custom_groups(server: &ApiServer) -> Result<Vec<String>> {
    let list = server.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")?;
    let groups = list["items"].as_array().into_iter().flatten();
    Ok(groups.filter_map(|crd| crd["spec"]["group"].as_str().map(str::to_owned)).collect())
}

/// Returns a resource of discovery without the fields that can be derived.
fn row(resource: &Value) -> Value {
    let mut row = resource.as_object().cloned().unwrap_or_default();
    row.remove("storageVersionHash");
    Value::Object(row)
}
