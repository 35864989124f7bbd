//! Defaults.

use serde_json::{Value, json};
use windlass_store::object_meta as meta;

use super::Pods;
use crate::json::{spec_mut, text_at};
use crate::kind::Defaults;
use crate::pod_template::defaults::default_pod;

impl Defaults for Pods {
    fn default(&self, object: &mut Value) {
        default_pod(spec_mut(object));
        if object.get("status").is_some() {
            mirror_pod_ip(object);
        }
    }
}

/// Makes `podIP` the first of `podIPs`. Where the two differ, `podIP` wins.
fn mirror_pod_ip(object: &mut Value) {
    let first = text_at(object, "/status/podIPs/0/ip").to_owned();
    let single = text_at(object, "/status/podIP").to_owned();
    let status = meta::entry_object(object, "status");
    if !single.is_empty() && single != first {
        status.insert("podIPs".to_owned(), json!([{"ip": single}]));
    } else if !first.is_empty() {
        status.insert("podIP".to_owned(), first.into());
    }
}
