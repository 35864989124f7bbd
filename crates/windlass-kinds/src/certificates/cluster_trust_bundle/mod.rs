//! Bundles of trusted authorities for the whole cluster.

mod table;
mod validate;

use serde_json::Value;
use windlass_store::object_meta as meta;
use windlass_wire::{ApiError, GroupResource, names};

use super::GROUP;
use super::signer::may_act_for;
use crate::json::text_at;
use crate::kind::{Admission, Kind, KindConfig, WriteContext};

pub(crate) static KIND: Kind =
    Kind { validate: &Bundles, admission: &Bundles, table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig {
    // The rule for names depends on the signer: `validate` has the rule.
    name: names::path_segment_name,
    selectable: &[("spec.signerName", SIGNER_POINTER)],
    unconditional_update: false,
    unsupported: Some("the node projects no bundle into pods"),
    writes: &[],
    ..KindConfig::DATA
};

const SIGNER_POINTER: &str = "/spec/signerName";

struct Bundles;

impl Admission for Bundles {
    fn validate_admission(
        &self,
        cx: &WriteContext<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        let signer = text_at(object, SIGNER_POINTER);
        let keeps_content = old.is_some_and(|old| differs_for_collection_only(object, old));
        if signer.is_empty() || keeps_content || may_act_for(cx, "attest", signer) {
            return Ok(());
        }
        let resource = GroupResource::new(GROUP, "clustertrustbundles");
        let signer = windlass_schema::go_quote(signer);
        let why = format!("user not permitted to attest for signerName {signer}");
        Err(ApiError::forbidden(&resource, meta::name(object), why))
    }
}

/// Returns whether two objects differ at most in the metadata that the garbage collector writes.
fn differs_for_collection_only(object: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let mut rest = object.clone();
        if let Some(metadata) = rest.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["ownerReferences", "finalizers", "managedFields"] {
                metadata.remove(field);
            }
        }
        rest
    };
    rest(object) == rest(old)
}
