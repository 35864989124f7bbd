//! Legacy tokens: tokens in Secrets of type `kubernetes.io/service-account-token`. Such tokens have neither
//! an audience nor an expiry, and are valid as long as the Secret has the token.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Identity;
use super::issuer::Invalid;
use crate::store::View;
use crate::store::service_account_name;
use crate::wire::ApiError;
use windlass_kinds::resources;

/// The issuer of all legacy tokens.
pub(super) const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
/// The label of a Secret with the day of the token's last use.
pub(crate) const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
/// The label of a Secret with a token that is no longer accepted.
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

const NAMESPACE: &str = "kubernetes.io/serviceaccount/namespace";
const SECRET: &str = "kubernetes.io/serviceaccount/secret.name";
const NAME: &str = "kubernetes.io/serviceaccount/service-account.name";
const UID: &str = "kubernetes.io/serviceaccount/service-account.uid";

/// The claims of a legacy token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LegacyClaims {
    pub(crate) namespace: String,
    /// The name and the uid of the service account.
    pub(crate) name: String,
    pub(crate) uid: String,
    /// The name of the Secret that has the token.
    pub(crate) secret: String,
}

impl LegacyClaims {
    /// Reads the payload of a token.
    ///
    /// # Errors
    /// A claim is missing, or does not agree with the other claims, in the words of the real server.
    pub(super) fn read(payload: &Value) -> Result<Self, Invalid> {
        let text = |claim: &str, what: &str| {
            let text = payload[claim].as_str().filter(|text| !text.is_empty());
            text.map(str::to_owned).ok_or_else(|| format!("{what} claim is missing"))
        };
        let subject = text("sub", "sub")?;
        let claims = Self {
            namespace: text(NAMESPACE, "namespace")?,
            secret: text(SECRET, "secretName")?,
            name: text(NAME, "serviceAccountName")?,
            uid: text(UID, "serviceAccountUID")?,
        };
        if subject != service_account_name(&claims.namespace, &claims.name) {
            return Err("sub claim is invalid".to_owned());
        }
        Ok(claims)
    }

    /// Returns the payload of the token.
    pub(super) fn payload(&self) -> Value {
        json!({
            "iss": LEGACY_ISSUER,
            NAMESPACE: self.namespace,
            SECRET: self.secret,
            NAME: self.name,
            UID: self.uid,
            "sub": service_account_name(&self.namespace, &self.name),
        })
    }

    /// Returns the user of the token.
    pub(crate) fn identity(&self) -> Identity {
        Identity::service_account(&self.namespace, &self.name).with_uid(&*self.uid)
    }

    /// Returns the key of the Secret in the store.
    pub(crate) fn secret_key(&self) -> String {
        format!("{}/{}", self.namespace, self.secret)
    }

    /// Checks that the Secret still has the token, and that the service account exists. Returns whether the Secret is to
    /// be labelled with the day.
    ///
    /// # Errors
    /// The reason, in the words of the real server.
    pub(crate) fn check(&self, token: &str, view: &View, now: Timestamp) -> Result<bool, Invalid> {
        let Self { namespace, name, secret, .. } = self;
        let invalidated = || "Token has been invalidated".to_owned();
        let stored = view.get(&resources::SECRETS, &self.secret_key());
        let stored = stored.filter(|secret| !secret.is_terminating()).ok_or_else(invalidated)?;
        let copy = stored.value()["data"]["token"].as_str().and_then(|text| STANDARD.decode(text).ok());
        if copy.as_deref() != Some(token.as_bytes()) {
            return Err("Token does not match server's copy".to_owned());
        }
        let account = view.get(&resources::SERVICE_ACCOUNTS, &format!("{namespace}/{name}"));
        let missing = || ApiError::not_found(&resources::SERVICE_ACCOUNTS.group_resource(), name).to_string();
        let account = account.ok_or_else(missing)?;
        if account.is_terminating() {
            return Err(format!("ServiceAccount {namespace}/{name} has been deleted"));
        }
        if account.uid() != self.uid {
            let found = account.uid();
            return Err(format!("ServiceAccount UID ({found}) does not match claim ({})", self.uid));
        }
        let label = |label: &str| stored.labels().get(label).unwrap_or_default().to_owned();
        if !label(INVALID_SINCE).is_empty() {
            return Err(format!(
                "the token in secret {namespace}/{secret} for service account {namespace}/{name} has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
            ));
        }
        let tomorrow = now.checked_add(jiff::SignedDuration::from_hours(24)).unwrap_or(now);
        Ok(![day(now), day(tomorrow)].contains(&label(LAST_USED)))
    }
}

/// Returns the day in the form of the labels, in UTC.
pub(crate) fn day(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_claims_must_agree() {
        let claims = LegacyClaims {
            namespace: "a".to_owned(),
            name: "bot".to_owned(),
            uid: "u".to_owned(),
            secret: "s".to_owned(),
        };
        let payload = claims.payload();
        assert_eq!(LegacyClaims::read(&payload), Ok(claims));
        let mut other = payload.clone();
        other["sub"] = json!("system:serviceaccount:a:root");
        assert_eq!(LegacyClaims::read(&other), Err("sub claim is invalid".to_owned()));
        other[SECRET] = json!("");
        assert_eq!(LegacyClaims::read(&other), Err("secretName claim is missing".to_owned()));
    }
}
