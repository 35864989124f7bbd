//! Certificate signing requests.

mod conditions;
mod defaults;
mod pem;
mod table;
mod validate;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use windlass_store::{Identity, object_meta as meta};
use windlass_wire::{ApiError, GroupResource, names};

use self::pem::Request;
use super::GROUP;
use super::signer::may_act_for;
use crate::json::{spec_mut, text_at};
use crate::kind::{Admission, Kind, KindConfig, Prepare, WriteContext, Writes};
use crate::subresource::Subresource;

pub(crate) static KIND: Kind = Kind {
    defaults: &SigningRequests,
    prepare: &SigningRequests,
    validate: &SigningRequests,
    admission: &SigningRequests,
    table: &table::TABLE,
    ..Kind::new(CONFIG)
};

const RESOURCE: &str = "certificatesigningrequests";

/// The signer of client certificates of the API server.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

const CONFIG: KindConfig = KindConfig {
    name: names::path_segment_name,
    selectable: &[("spec.signerName", "/spec/signerName")],
    writes: &[
        (Subresource::None, Writes::AllBut(&["spec", "status"])),
        (Subresource::Status, Writes::AllBut(&["spec"])),
        (Subresource::Approval, Writes::AllBut(&["spec", "status.certificate"])),
    ],
    ..KindConfig::DATA
};

struct SigningRequests;

const SIGNER: &str = "/spec/signerName";

const CERTIFICATE: &str = "/status/certificate";

/// Returns whether a request is for a client certificate of an administrator.
fn asks_for_masters(object: &Value) -> bool {
    text_at(object, SIGNER) == CLIENT_SIGNER
        && Request::parse(&bytes_at(object, "/spec/request"))
            .is_ok_and(|request| request.organizations().iter().any(|group| group == Identity::MASTERS))
}

fn bytes_at(object: &Value, pointer: &str) -> Vec<u8> {
    STANDARD.decode(text_at(object, pointer)).unwrap_or_default()
}

impl Prepare for SigningRequests {
    fn prepare_create(&self, cx: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        let spec = spec_mut(object);
        // The requester is the authenticated user.
        for field in ["username", "uid", "groups", "extra"] {
            spec.remove(field);
        }
        let user = cx.identity;
        spec.insert("username".to_owned(), user.name().into());
        spec.extend(user.uid().map(|uid| ("uid".to_owned(), uid.into())));
        if !user.groups().is_empty() {
            spec.insert("groups".to_owned(), json!(user.groups()));
        }
        if !user.extra().is_empty() {
            spec.insert("extra".to_owned(), json!(user.extra()));
        }
        object["status"] = json!({});
        Ok(())
    }

    fn prepare_update(&self, cx: &WriteContext<'_>, object: &mut Value, old: &Value) -> Result<(), ApiError> {
        if *cx.subresource == Subresource::Status {
            conditions::keep_decisions(object, old);
        }
        conditions::fill_times(object, old, &windlass_store::rfc3339(cx.env.now()));
        Ok(())
    }
}

impl Admission for SigningRequests {
    fn validate_admission(
        &self,
        cx: &WriteContext<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        let forbid = |why: String| {
            Err(ApiError::forbidden(&GroupResource::new(GROUP, RESOURCE), meta::name(object), why))
        };
        let Some(old) = old else {
            return if asks_for_masters(object) {
                forbid(format!(
                    "use of {CLIENT_SIGNER} signer with {} group is not allowed",
                    Identity::MASTERS
                ))
            } else {
                Ok(())
            };
        };
        let changed = |pointer: &str| object.pointer(pointer) != old.pointer(pointer);
        let verb = match cx.subresource {
            Subresource::Approval => "approve",
            Subresource::Status if changed(CERTIFICATE) || changed("/status/conditions") => "sign",
            _ => return Ok(()),
        };
        let signer = text_at(old, SIGNER);
        if may_act_for(cx, verb, signer) {
            return Ok(());
        }
        let signer = windlass_schema::go_quote(signer);
        forbid(format!("user not permitted to {verb} requests with signerName {signer}"))
    }
}
