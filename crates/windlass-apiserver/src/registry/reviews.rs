//! Reviews, such as SubjectAccessReviews: a `POST` is answered, and the object is not stored.

use http::{Response, StatusCode};

use super::Call;
use super::options::WriteOptions;
use crate::auth::Reviewer;
use crate::body::Body;
use crate::verb::Verb;
use crate::wire::ApiError;

/// Returns whether a request is a review, which is answered and not stored.
pub(super) fn is_review(call: &Call<'_>) -> bool {
    let group = call.resource.group.as_str();
    matches!(group, "authentication.k8s.io" | "authorization.k8s.io") && call.route.verb == Verb::Create
}

/// Answers a review.
pub(super) async fn answer(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    call.negotiate()?;
    let options = WriteOptions::parse(&call.query, "CreateOptions")?;
    let mut review = call.decode(options)?;
    let kind = &call.resource.kind.clone();
    call.track(None, &mut review).await;
    call.admit_request(&mut review).await?;
    let answer = {
        let reviewer = Reviewer {
            asker: call.identity,
            namespace: &call.route.namespace,
            authorizer: &call.state.authorizer,
            store: &call.state.store,
            own_audiences: call.state.issuer.audiences(),
            authenticate: &|token, audiences| call.state.authenticate(token, audiences),
            now: call.state.env.now_rfc3339(),
        };
        reviewer.answer(kind, review).ok_or_else(ApiError::no_such_resource)??
    };
    call.value(StatusCode::CREATED, &answer).await
}
