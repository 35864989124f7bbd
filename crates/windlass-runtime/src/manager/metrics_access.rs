//! Access to the metrics: decided by the API server. The decisions are remembered.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use parking_lot::Mutex;
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use tokio::time::{Instant, timeout};

use super::http::plain;
use crate::{
    client::{ApiClient, Call, JSON},
    error::{Error, Result},
};

/// How long the API server's word about a token is remembered.
const TOKEN_LIFE: Duration = Duration::from_mins(1);

/// How long a permission is remembered.
const ALLOWED_LIFE: Duration = Duration::from_mins(5);

/// How long a refusal is remembered.
const DENIED_LIFE: Duration = Duration::from_secs(30);

/// The limit for a review.
const REVIEW_LIMIT: Duration = Duration::from_secs(10);

/// The number of answers that are remembered, of each sort.
const REMEMBERED: usize = 1024;

/// The longest token that the API server is asked about.
const MAX_TOKEN: usize = 16 << 10;

/// A SHA-256 hash. The lengths of tokens and of the names of users have no influence on the memory.
type Fingerprint = [u8; SHA256_OUTPUT_LEN];

/// Asks the API server whether a request may be answered.
pub(super) struct MetricsAccess {
    client: ApiClient,
    users: Mutex<Remembered<Option<UserInfo>>>,
    decisions: Mutex<Remembered<bool>>,
}

impl MetricsAccess {
    pub(super) fn new(client: ApiClient) -> Self {
        Self { client, users: Mutex::default(), decisions: Mutex::default() }
    }

    /// Returns the refusal of a request without access. Codes and texts are controller-runtime's.
    pub(super) async fn refusal<B>(&self, request: &Request<B>) -> Option<Response<Full<Bytes>>> {
        let refuse = |code, text: String| Some(plain(code, format!("{text}\n")));
        let Some(token) = bearer_token(request.headers()) else {
            return refuse(StatusCode::UNAUTHORIZED, "Unauthorized".to_owned());
        };
        let user = match self.user(token).await {
            Ok(Some(user)) => user,
            Ok(None) => return refuse(StatusCode::UNAUTHORIZED, "Unauthorized".to_owned()),
            Err(error) => {
                tracing::error!(%error, "Authentication failed");
                return refuse(StatusCode::INTERNAL_SERVER_ERROR, "Authentication failed".to_owned());
            }
        };
        let name = user.username.clone().unwrap_or_default();
        let (verb, path) = (request.method().as_str().to_lowercase(), request.uri().path().to_owned());
        match self.is_allowed(user, verb, path).await {
            Ok(true) => None,
            Ok(false) => refuse(StatusCode::FORBIDDEN, format!("Authorization denied for user {name}")),
            Err(error) => {
                tracing::error!(%error, user = name, "Authorization failed");
                refuse(StatusCode::INTERNAL_SERVER_ERROR, format!("Authorization for user {name} failed"))
            }
        }
    }

    /// Returns the user of a token.
    async fn user(&self, token: &str) -> Result<Option<UserInfo>> {
        let key = fingerprint(token.as_bytes());
        if let Some(user) = self.users.lock().get(&key, Instant::now()) {
            return Ok(user);
        }
        let review = TokenReview {
            spec: TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() },
            ..TokenReview::default()
        };
        let review: TokenReview = self.ask("/apis/authentication.k8s.io/v1/tokenreviews", &review).await?;
        let status = review.status.unwrap_or_default();
        let user = status.user.filter(|_| status.authenticated == Some(true));
        self.users.lock().put(key, user.clone(), Instant::now(), TOKEN_LIFE);
        Ok(user)
    }

    async fn is_allowed(&self, user: UserInfo, verb: String, path: String) -> Result<bool> {
        let key = fingerprint(&serde_json::to_vec(&(&user, &verb, &path))?);
        if let Some(allowed) = self.decisions.lock().get(&key, Instant::now()) {
            return Ok(allowed);
        }
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                extra: user.extra,
                groups: user.groups,
                uid: user.uid,
                user: user.username,
                non_resource_attributes: Some(NonResourceAttributes { path: Some(path), verb: Some(verb) }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let review: SubjectAccessReview =
            self.ask("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await?;
        let allowed = review.status.is_some_and(|status| status.allowed);
        let life = if allowed { ALLOWED_LIFE } else { DENIED_LIFE };
        self.decisions.lock().put(key, allowed, Instant::now(), life);
        Ok(allowed)
    }

    async fn ask<T: serde::Serialize + serde::de::DeserializeOwned>(
        &self,
        path: &str,
        review: &T,
    ) -> Result<T> {
        let answer = self.client.exchange(Call::write(Method::POST, path.to_owned(), JSON, review)?);
        timeout(REVIEW_LIMIT, answer)
            .await
            .map_err(|_| Error::setup("the API server did not answer a review in time"))?
    }
}

/// Returns the token of a request.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= MAX_TOKEN).then_some(token)
}

fn fingerprint(bytes: &[u8]) -> Fingerprint {
    let mut fingerprint = Fingerprint::default();
    fingerprint.copy_from_slice(digest(&SHA256, bytes).as_ref());
    fingerprint
}

/// Answers that are valid for some time. If there are too many answers, the answer that expires first is
/// removed.
struct Remembered<V> {
    answers: BTreeMap<Fingerprint, (V, Instant)>,
}

impl<V> Default for Remembered<V> {
    fn default() -> Self {
        Self { answers: BTreeMap::new() }
    }
}

impl<V: Clone> Remembered<V> {
    fn get(&self, key: &Fingerprint, now: Instant) -> Option<V> {
        self.answers.get(key).filter(|(_, until)| *until > now).map(|(answer, _)| answer.clone())
    }

    fn put(&mut self, key: Fingerprint, answer: V, now: Instant, life: Duration) {
        self.answers.retain(|_, (_, until)| *until > now);
        if self.answers.len() >= REMEMBERED && !self.answers.contains_key(&key) {
            let first = self.answers.iter().min_by_key(|(_, (_, until))| *until).map(|(key, _)| *key);
            first.and_then(|first| self.answers.remove(&first));
        }
        self.answers.insert(key, (answer, now + life));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_expire_and_are_bounded() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let key = |n: usize| fingerprint(&n.to_le_bytes());
        let mut remembered = Remembered::default();
        remembered.put(key(0), 1, now, second);
        assert_eq!(remembered.get(&key(0), now), Some(1));
        assert_eq!(remembered.get(&key(0), now + second), None);
        let mut many = Remembered::default();
        for n in 0..REMEMBERED + 10 {
            many.put(key(n), (), now, (n as u32 + 1) * second);
        }
        assert_eq!(many.answers.len(), REMEMBERED);
        assert_eq!(many.get(&key(0), now), None, "those that expire first are forgotten");
        let later = now + REMEMBERED as u32 * second;
        many.put(key(0), (), later, second);
        assert_eq!(many.answers.len(), 11, "expired answers take no memory");
    }

    #[test]
    fn only_bearer_tokens_count() {
        let token = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().expect("a header"));
            bearer_token(&headers).map(ToOwned::to_owned)
        };
        assert_eq!(token("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(token("bearer  abc ").as_deref(), Some("abc"));
        assert_eq!(token("Basic abc"), None);
        assert_eq!(token("Bearer "), None);
        assert_eq!(token(&format!("Bearer {}", "a".repeat(MAX_TOKEN + 1))), None);
    }
}
