//! Reviews, such as SubjectAccessReviews: a `POST` is answered, and nothing is stored.

use http::{Response, StatusCode};

use super::Call;
use super::options::WriteOptions;
use crate::auth::Reviewer;
use crate::body::Body;
use crate::wire::{self, ApiError};

/// Answers a review; `None` if the resource is not a review.
pub(super) fn answer(call: &Call<'_>) -> Option<Result<Response<Body>, ApiError>> {
    let asks = matches!(call.resource.group.as_str(), "authentication.k8s.io" | "authorization.k8s.io");
    if !asks || call.route.verb != "create" {
        return None;
    }
    Some(reply(call))
}

fn reply(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    WriteOptions::parse(&call.query, "CreateOptions")?;
    let kind = &call.resource.kind;
    let content_type = call.header(http::header::CONTENT_TYPE);
    let decoded =
        wire::decode_body(content_type, call.body, kind, |bytes| call.state.decode_protobuf(bytes))?;
    let mut review = decoded.value;
    let fields = crate::meta::fields_mut(&mut review);
    fields.insert("kind".into(), kind.clone().into());
    fields.insert("apiVersion".into(), call.resource.api_version().into());
    let reviewer = Reviewer {
        asker: call.identity,
        namespace: &call.route.namespace,
        identity_of: &|token| call.state.identity_of(token),
        now: call.state.env.now_rfc3339(),
    };
    let answer = reviewer.answer(kind, review).ok_or_else(ApiError::no_such_resource)??;
    call.value(StatusCode::CREATED, &answer)
}
