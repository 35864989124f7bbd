//! The claims of service account tokens, and the objects that a token lives with.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use windlass_schema::go_quote;

use super::Identity;
use super::issuer::Invalid;
use crate::meta;
use crate::store::service_account_name;
use crate::store::{ResourceId, Stored, View};
use crate::wire::ApiError;
use windlass_kinds::resources;

/// How much clocks may differ: tokens are valid that much longer.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// An object by name and uid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl Reference {
    fn read(value: &Value) -> Option<Self> {
        let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        value.is_object().then(|| Self { name: text("name"), uid: text("uid") })
    }

    fn claim(&self) -> Value {
        let mut claim = Map::new();
        claim.insert("name".to_owned(), json!(self.name));
        if !self.uid.is_empty() {
            claim.insert("uid".to_owned(), json!(self.uid));
        }
        Value::Object(claim)
    }
}

/// The claims of a token about the service account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) audiences: Vec<String>,
    /// Seconds since 1970.
    pub(crate) expires: i64,
    /// Seconds since 1970, 0 in a token without the claim.
    pub(crate) not_before: i64,
    /// The unique id of the token.
    pub(crate) id: String,
    /// The objects that the token is bound to. A token of a pod also names the pod's node.
    pub(crate) pod: Option<Reference>,
    pub(crate) secret: Option<Reference>,
    pub(crate) node: Option<Reference>,
}

impl Claims {
    /// Reads the payload of a token.
    pub(super) fn read(payload: &Value) -> Option<Self> {
        let text = |pointer: &str| payload.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let bound = |kind: &str| Reference::read(&payload["kubernetes.io"][kind]);
        let audiences = payload["aud"].as_array()?.iter().filter_map(Value::as_str);
        Some(Self {
            namespace: text("/kubernetes.io/namespace")?,
            name: text("/kubernetes.io/serviceaccount/name")?,
            uid: text("/kubernetes.io/serviceaccount/uid")?,
            audiences: audiences.map(str::to_owned).collect(),
            expires: payload["exp"].as_i64()?,
            not_before: payload["nbf"].as_i64().unwrap_or_default(),
            id: text("/jti").unwrap_or_default(),
            pod: bound("pod"),
            secret: bound("secret"),
            node: bound("node"),
        })
    }

    /// Returns the payload of a token that is issued `now`.
    pub(super) fn payload(&self, issuer: &str, now: i64) -> Value {
        let account = Reference { name: self.name.clone(), uid: self.uid.clone() };
        let mut own = Map::new();
        own.insert("namespace".to_owned(), json!(self.namespace));
        own.insert("serviceaccount".to_owned(), account.claim());
        for (kind, bound) in [("pod", &self.pod), ("secret", &self.secret), ("node", &self.node)] {
            if let Some(bound) = bound {
                own.insert(kind.to_owned(), bound.claim());
            }
        }
        json!({
            "aud": self.audiences,
            "exp": self.expires,
            "iat": now,
            "nbf": self.not_before,
            "iss": issuer,
            "jti": self.id,
            "kubernetes.io": own,
            "sub": service_account_name(&self.namespace, &self.name),
        })
    }

    /// Returns the user of the token.
    pub(crate) fn identity(&self) -> Identity {
        let mut identity = Identity::service_account(&self.namespace, &self.name).with_uid(&*self.uid);
        let mut add = |key: &str, value: &str| {
            if !value.is_empty() {
                let key = format!("authentication.kubernetes.io/{key}");
                identity = identity.clone().with_extra(key, value);
            }
        };
        if !self.id.is_empty() {
            add("credential-id", &format!("JTI={}", self.id));
        }
        if let Some(pod) = &self.pod {
            add("pod-name", &pod.name);
            add("pod-uid", &pod.uid);
        }
        if let Some(node) = &self.node {
            add("node-name", &node.name);
            add("node-uid", &node.uid);
        }
        identity
    }

    /// Checks the token's time, and that the service account and the bound object still exist.
    ///
    /// # Errors
    /// The reason, in the words of the real server.
    pub(crate) fn check(&self, view: &View, now: Timestamp) -> Result<(), Invalid> {
        if now.as_second() > self.expires.saturating_add(LEEWAY.as_secs()) {
            return Err("service account token has expired".to_owned());
        }
        if now.as_second() < self.not_before.saturating_sub(LEEWAY.as_secs()) {
            return Err("service account token is not valid yet".to_owned());
        }
        let Self { namespace, name, .. } = self;
        let account = view.get(&resources::SERVICE_ACCOUNTS, &format!("{namespace}/{name}"));
        let account = account.ok_or_else(|| {
            ApiError::not_found(&resources::SERVICE_ACCOUNTS.group_resource(), name).to_string()
        })?;
        if account.uid() != self.uid {
            return Err(format!(
                "service account UID ({}) does not match claim ({})",
                account.uid(),
                self.uid
            ));
        }
        if was_deleted(account, now) {
            return Err(format!("service account {namespace}/{name} has been deleted"));
        }
        if let Some(secret) = &self.secret {
            check_bound(view, now, &resources::SECRETS, &format!("{namespace}/{}", secret.name), secret)?;
        }
        if let Some(pod) = &self.pod {
            check_bound(view, now, &resources::PODS, &format!("{namespace}/{}", pod.name), pod)?;
        } else if let Some(node) = &self.node {
            check_bound(view, now, &resources::NODES, &node.name, node)?;
        }
        Ok(())
    }

    /// Returns the audiences of the token that are in `wanted`.
    ///
    /// # Errors
    /// There is none, in the words of the real server.
    pub(crate) fn for_audiences(&self, wanted: &[String]) -> Result<Vec<String>, Invalid> {
        let common: Vec<String> =
            self.audiences.iter().filter(|audience| wanted.contains(audience)).cloned().collect();
        if !common.is_empty() {
            return Ok(common);
        }
        let quoted = |texts: &[String]| {
            format!("[{}]", texts.iter().map(|text| go_quote(text)).collect::<Vec<_>>().join(" "))
        };
        let (own, wanted) = (quoted(&self.audiences), quoted(wanted));
        Err(format!("token audiences {own} is invalid for the target audiences {wanted}"))
    }
}

/// Checks that a bound object exists, with the same uid.
fn check_bound(
    view: &View,
    now: Timestamp,
    resource: &ResourceId,
    key: &str,
    bound: &Reference,
) -> Result<(), Invalid> {
    let found = view.get(resource, key);
    let Some(found) = found.filter(|found| found.uid() != bound.uid || !was_deleted(found, now)) else {
        return Err("service account token has been invalidated".to_owned());
    };
    if found.uid() == bound.uid {
        return Ok(());
    }
    let kind = resource.resource.trim_end_matches('s');
    Err(format!(
        "{kind} UID ({}) does not match service account {kind} ref claim ({})",
        found.uid(),
        bound.uid
    ))
}

/// Returns whether the object's deletion is due, although a finalizer still holds the object.
fn was_deleted(object: &Stored, now: Timestamp) -> bool {
    if !object.is_terminating() {
        return false;
    }
    let value = object.value();
    let at = meta::text(&value, "deletionTimestamp").parse::<Timestamp>();
    at.is_ok_and(|at| now.duration_since(at) > LEEWAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_of_a_pod_names_the_pod_and_its_node() {
        let bound = |name: &str| Some(Reference { name: name.to_owned(), uid: format!("{name}-uid") });
        let claims = Claims {
            namespace: "a".to_owned(),
            name: "bot".to_owned(),
            uid: "u".to_owned(),
            audiences: vec!["x".to_owned()],
            expires: 100,
            not_before: 10,
            id: "7".to_owned(),
            pod: bound("p"),
            node: bound("n"),
            secret: None,
        };
        let payload = claims.payload("i", 10);
        assert_eq!(payload["kubernetes.io"]["pod"], json!({"name": "p", "uid": "p-uid"}));
        assert_eq!(Claims::read(&payload).as_ref(), Some(&claims));
        let identity = claims.identity();
        assert_eq!(identity.name(), "system:serviceaccount:a:bot");
        assert_eq!(
            identity.groups(),
            ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"]
        );
        let extra: Vec<String> =
            identity.extra().iter().map(|(key, values)| format!("{key}={}", values.join(","))).collect();
        assert_eq!(
            extra,
            [
                "authentication.kubernetes.io/credential-id=JTI=7",
                "authentication.kubernetes.io/node-name=n",
                "authentication.kubernetes.io/node-uid=n-uid",
                "authentication.kubernetes.io/pod-name=p",
                "authentication.kubernetes.io/pod-uid=p-uid",
            ]
        );
    }

    #[test]
    fn a_token_has_to_be_for_one_of_the_audiences() {
        let claims = Claims { audiences: vec!["a".to_owned(), "b".to_owned()], ..Claims::default() };
        assert_eq!(claims.for_audiences(&["b".to_owned(), "c".to_owned()]).unwrap(), ["b"]);
        assert_eq!(
            claims.for_audiences(&["c".to_owned()]).unwrap_err(),
            r#"token audiences ["a" "b"] is invalid for the target audiences ["c"]"#
        );
    }
}
