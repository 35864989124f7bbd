//! `POST …/token`: signs a token for a service account.

use http::{Response, StatusCode, header};
use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::Call;
use super::options::WriteOptions;
use crate::auth::Claims;
use crate::body::Body;
use crate::env::rfc3339;
use crate::state::DEFAULT_AUDIENCE;
use crate::wire::{self, ApiError};

const DEFAULT_SECONDS: i64 = 3_600;
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;

pub(super) async fn request(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    WriteOptions::parse(&call.query, "CreateOptions")?;
    let content_type = call.header(header::CONTENT_TYPE);
    let decoded = wire::decode_body(content_type, call.body, "TokenRequest", |bytes| {
        call.state.decode_protobuf(bytes)
    })?;
    let view = call.state.store.view();
    let account = view.get(&call.resource.storage, &call.key()).ok_or_else(|| call.not_found())?;
    let spec = decoded.value.get("spec").cloned().unwrap_or_default();
    let seconds = spec.get("expirationSeconds").and_then(Value::as_i64).unwrap_or(DEFAULT_SECONDS);
    check_duration(seconds)?;
    let audiences: Vec<String> = spec
        .get("audiences")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let audiences = if audiences.is_empty() { vec![DEFAULT_AUDIENCE.to_owned()] } else { audiences };
    let now = call.state.env.now();
    let claims = Claims {
        namespace: call.route.namespace.clone(),
        name: call.route.name.clone(),
        uid: account.uid().to_owned(),
        audiences: audiences.clone(),
        expires: now.as_second() + seconds,
    };
    let token = call.state.issuer.sign(&claims, now.as_second(), &call.state.env.uid());
    let reply = json!({
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": claims.name,
            "namespace": claims.namespace,
            "uid": claims.uid,
            "creationTimestamp": rfc3339(now),
        },
        "spec": {
            "audiences": audiences,
            "expirationSeconds": seconds,
            "boundObjectRef": spec.get("boundObjectRef").cloned().unwrap_or_default(),
        },
        "status": {
            "token": token,
            "expirationTimestamp": rfc3339(now + jiff::SignedDuration::from_secs(seconds)),
        },
    });
    call.value(StatusCode::CREATED, &reply).await
}

fn check_duration(seconds: i64) -> Result<(), ApiError> {
    let why = if seconds < SHORTEST {
        "may not specify a duration less than 10 minutes"
    } else if seconds > LONGEST {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    let error = FieldError::invalid("spec.expirationSeconds", seconds, why);
    Err(ApiError::invalid("authentication.k8s.io", "TokenRequest", "", std::slice::from_ref(&error)))
}
