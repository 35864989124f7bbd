//! The families of the addresses of a service: IPv4 alone, because the cluster has no other.

use serde_json::{Value, json};
use windlass_schema::FieldError;
use windlass_store::object_meta as meta;
use windlass_wire::ApiError;

use super::{kind, validate};
use crate::json::{default, list_at, spec_mut, text, text_at};

const POLICY: &str = "spec.ipFamilyPolicy";

/// Sets the families and the family policy, or refuses families that the cluster does not have.
pub(super) fn settle(object: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
    if kind(spec_mut(object)) == "ExternalName" {
        return Ok(());
    }
    let before = old.map(|old| &old["spec"]);
    let headless = text_at(object, "/spec/clusterIP") == "None";
    let selects =
        object.pointer("/spec/selector").and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    let is_free = headless && !selects;
    if text_at(object, "/spec/ipFamilyPolicy").is_empty()
        && object.pointer(&pointer(POLICY)).is_none_or(Value::is_null)
    {
        let kept = before.map_or("", |before| text(before, "ipFamilyPolicy"));
        let policy = match kept {
            "" if is_free => "RequireDualStack",
            "" => "SingleStack",
            kept => kept,
        };
        spec_mut(object).insert("ipFamilyPolicy".to_owned(), policy.into());
    }
    refuse(object, validate::validate_addresses(&object["spec"], before))?;
    let single = text_at(object, "/spec/ipFamilyPolicy") == "SingleStack";
    if let Some(before) = before {
        let errors = follow_policy(object, before, single);
        refuse(object, errors)?;
    }
    refuse(object, check_policy(object, single))?;
    let mut families: Vec<Value> = list_at(object, "/spec/ipFamilies").to_vec();
    if is_free {
        if families.is_empty() {
            families.push("IPv4".into());
        }
        if families.len() < 2 && !single {
            families.push(if families[0] == "IPv4" { "IPv6" } else { "IPv4" }.into());
        }
        spec_mut(object).insert("ipFamilies".to_owned(), families.into());
        return Ok(());
    }
    let mut errors = Vec::new();
    let policy = text_at(object, "/spec/ipFamilyPolicy");
    if policy == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid(POLICY, policy, detail));
    }
    for (index, family) in families.iter().enumerate().filter(|(_, family)| *family != "IPv4") {
        let field = format!("spec.ipFamilies[{index}]");
        errors.push(FieldError::invalid(field, family.clone(), "not configured on this cluster"));
    }
    refuse(object, errors)?;
    if families.is_empty() {
        spec_mut(object).remove("ipFamilies");
    }
    default(spec_mut(object), "ipFamilies", json!(["IPv4"]));
    Ok(())
}

fn pointer(field: &str) -> String {
    format!("/{}", field.replace('.', "/"))
}

/// Releases the second address and family if the policy asks for a release; otherwise both must stay.
fn follow_policy(object: &mut Value, before: &Value, single: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (field, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
        let now = list_at(&object["spec"], &format!("/{field}")).to_vec();
        let old = list_at(before, &format!("/{field}"));
        if !single {
            let is_start = !now.is_empty() && now.len() < old.len() && old.starts_with(&now);
            if is_start {
                let policy = object["spec"]["ipFamilyPolicy"].clone();
                let detail = format!("must be 'SingleStack' to release the secondary {what}");
                errors.push(FieldError::invalid(POLICY, policy, detail));
            }
        } else if now.len() > 1 && now == old {
            spec_mut(object).insert(field.to_owned(), json!([now[0]]));
        }
    }
    errors
}

/// Checks that the policy allows the addresses, and that the cluster has the families of the addresses.
fn check_policy(object: &Value, single: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (addresses, families) = (list_at(object, "/spec/clusterIPs"), list_at(object, "/spec/ipFamilies"));
    for (list, what) in [(addresses, "cluster IPs"), (families, "IP families")] {
        if single && list.len() == 2 {
            let detail =
                format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            errors.push(FieldError::invalid(POLICY, object["spec"]["ipFamilyPolicy"].clone(), detail));
        }
    }
    for (index, address) in addresses.iter().enumerate().skip(families.len()) {
        if address.as_str().is_some_and(|address| address.contains(':')) {
            let field = format!("spec.clusterIPs[{index}]");
            let detail = "IPv6 is not configured on this cluster";
            errors.push(FieldError::invalid(field, addresses.to_vec(), detail));
        }
    }
    errors
}

fn refuse(object: &Value, errors: Vec<FieldError>) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid("", "Service", meta::name(object), &errors))
}
