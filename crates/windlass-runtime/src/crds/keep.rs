//! The fields of an installed CRD that an apply keeps.

use serde_json::{Map, Value};

use super::{
    decision::{priority, stored_version},
    install::FIELD_MANAGER,
};

/// Copies the labels and annotations that kubectl has applied and that `crd` does not set, such as the annotation of cert-manager: an
/// apply removes the fields that the field manager leaves out.
pub(super) fn keep_metadata(live: &Value, crd: &mut Value) {
    let entries = live["metadata"]["managedFields"].as_array().into_iter().flatten();
    let own = entries.filter(|entry| entry["manager"] == FIELD_MANAGER && entry["operation"] == "Apply");
    for fields in own.map(|entry| &entry["fieldsV1"]["f:metadata"]) {
        for member in ["labels", "annotations"] {
            let owned = fields[format!("f:{member}")].as_object().into_iter().flat_map(Map::keys);
            for key in owned.filter_map(|key| key.strip_prefix("f:")) {
                let value = &live["metadata"][member][key];
                if value.is_string() && crd["metadata"][member][key].is_null() {
                    crd["metadata"][member][key] = value.clone();
                }
            }
        }
    }
}

/// Copies the conversion webhook of the live CRD, unless `crd` has a single version, or names another
/// service.
pub(super) fn keep_conversion(live: &Value, crd: &mut Value) {
    let (before, now) = (&live["spec"]["conversion"], &crd["spec"]["conversion"]);
    let has_versions = crd["spec"]["versions"].as_array().is_some_and(|versions| versions.len() > 1);
    let service = |conversion: &Value| conversion["webhook"]["clientConfig"]["service"].clone();
    let is_replaced =
        now.is_object() && !service(before).is_null() && !same_service(&service(before), &service(now));
    if before["strategy"] == "Webhook" && has_versions && !is_replaced {
        crd["spec"]["conversion"] = before.clone();
    }
}

/// Keeps the storage version of the live CRD if `crd` has the version and stores an older version: an update that adds a part must not take
/// the newer storage version back.
pub(super) fn keep_stored_version(live: &Value, crd: &mut Value) {
    let (Some(before), Some(now)) = (stored_version(live), stored_version(crd)) else { return };
    let Some(versions) = crd["spec"]["versions"].as_array() else { return };
    let is_known = versions.iter().any(|version| version["name"] == before);
    if !is_known || priority(before) <= priority(now) {
        return;
    }
    for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
        let is_stored = version["name"] == before;
        version["storage"] = is_stored.into();
    }
}

/// Returns whether two references name the same service. The server adds the default port.
fn same_service(one: &Value, other: &Value) -> bool {
    ["namespace", "name", "path"].into_iter().all(|member| one[member] == other[member])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn crd(versions: usize, conversion: &Value) -> Value {
        json!({ "spec": { "versions": vec![json!({}); versions], "conversion": conversion } })
    }

    fn webhook(config: Value) -> Value {
        json!({ "strategy": "Webhook", "webhook": { "clientConfig": config } })
    }

    #[track_caller]
    fn after(live: &Value, versions: usize, own: &Value, expected: &Value) {
        let mut installed = crd(versions, own);
        keep_conversion(&crd(2, live), &mut installed);
        assert_eq!(&installed["spec"]["conversion"], expected);
    }

    #[test]
    fn a_conversion_webhook_is_never_lost() {
        let url = webhook(json!({ "url": "https://127.0.0.1:1/convert" }));
        let service = |name: &str| json!({ "namespace": "web-system", "name": name, "path": "/convert" });
        let own = webhook(json!({ "service": service("web") }));
        let mut certified = own.clone();
        certified["webhook"]["clientConfig"]["caBundle"] = json!("cGVt");
        certified["webhook"]["clientConfig"]["service"]["port"] = json!(443);
        let other = webhook(json!({ "service": service("old") }));
        let none = json!({ "strategy": "None" });

        after(&url, 2, &Value::Null, &url);
        after(&url, 2, &own, &url);
        after(&certified, 2, &own, &certified);
        after(&other, 2, &Value::Null, &other);
        after(&other, 2, &own, &own);
        after(&none, 2, &own, &own);
        after(&none, 2, &Value::Null, &Value::Null);
        after(&url, 1, &Value::Null, &Value::Null);
    }

    #[test]
    fn labels_and_annotations_that_kubectl_applied_stay() {
        let owned = json!({ "f:metadata": { "f:annotations": { ".": {}, "f:inject": {}, "f:team": {} } } });
        let live = json!({ "metadata": {
            "annotations": { "inject": "yes", "team": "old", "foreign": "x" },
            "managedFields": [
                { "manager": "kubectl", "operation": "Apply", "fieldsV1": owned },
                { "manager": "other", "operation": "Update", "fieldsV1": { "f:metadata": { "f:annotations": { "f:foreign": {} } } } },
            ],
        } });
        let mut crd = json!({ "metadata": { "name": "a", "annotations": { "team": "web" } } });
        keep_metadata(&live, &mut crd);
        assert_eq!(
            crd,
            json!({ "metadata": { "name": "a", "annotations": { "inject": "yes", "team": "web" } } })
        );
    }

    #[test]
    fn a_newer_storage_version_stays() {
        let storing = |stored: &str, versions: &[&str]| {
            let version = |name: &&str| json!({ "name": name, "storage": *name == stored });
            json!({ "spec": { "versions": versions.iter().map(version).collect::<Vec<_>>() } })
        };
        let stored = |live: &Value, own: &Value| {
            let mut own = own.clone();
            keep_stored_version(live, &mut own);
            stored_version(&own).map(ToOwned::to_owned)
        };
        let (old, new) = (storing("v1", &["v1", "v2"]), storing("v2", &["v1", "v2"]));
        assert_eq!(stored(&new, &old).as_deref(), Some("v2"));
        assert_eq!(stored(&old, &new).as_deref(), Some("v2"));
        assert_eq!(stored(&storing("v3", &["v3"]), &new).as_deref(), Some("v2"), "the version is unknown");
    }
}
