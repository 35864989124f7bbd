//! Tokens of service accounts: JSON Web Tokens that this server signs and verifies.
//!
//! They are signed by HMAC-SHA256 with a secret that the server keeps until it stops. Others verify them with a TokenReview.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Identity;

/// The `iss` claim.
const ISSUER: &str = "https://kubernetes.default.svc";
/// The block size of SHA-256, in bytes.
const BLOCK: usize = 64;

/// Signs and verifies tokens.
pub(crate) struct Issuer {
    secret: [u8; 32],
}

/// The claims of a token whose signature is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) audiences: Vec<String>,
    /// Seconds since 1970.
    pub(crate) expires: i64,
}

impl Claims {
    /// Returns the user of the token.
    pub(crate) fn identity(&self) -> Identity {
        Identity::user(format!("system:serviceaccount:{}:{}", self.namespace, self.name))
            .with_uid(&*self.uid)
            .with_group("system:serviceaccounts")
            .with_group(format!("system:serviceaccounts:{}", self.namespace))
    }
}

impl Issuer {
    /// Creates an issuer with a random secret. The server's seed does not determine it.
    pub(crate) fn new() -> Self {
        let mut secret = [0; 32];
        secret[..16].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
        secret[16..].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
        // Six bits of each half are fixed in a UUID; 244 random ones are enough.
        Self { secret }
    }

    /// Signs a token. `now` is in seconds since 1970; `id` must be unique.
    pub(crate) fn sign(&self, claims: &Claims, now: i64, id: &str) -> String {
        let header = json!({"alg": "HS256", "typ": "JWT"});
        let payload = json!({
            "aud": claims.audiences,
            "exp": claims.expires,
            "iat": now,
            "nbf": now,
            "iss": ISSUER,
            "jti": id,
            "kubernetes.io": {
                "namespace": claims.namespace,
                "serviceaccount": {"name": claims.name, "uid": claims.uid},
            },
            "sub": format!("system:serviceaccount:{}:{}", claims.namespace, claims.name),
        });
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encode(&header), encode(&payload));
        let signature = URL_SAFE_NO_PAD.encode(hmac(&self.secret, signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    /// Returns the claims of a token, if this issuer signed it and it has not expired.
    pub(crate) fn verify(&self, token: &str, now: i64) -> Option<Claims> {
        let (signed, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        // Digests are compared, so that the time it takes reveals nothing about the signature.
        let wanted = hmac(&self.secret, signed.as_bytes());
        if Sha256::digest(&signature) != Sha256::digest(wanted) {
            return None;
        }
        let payload = URL_SAFE_NO_PAD.decode(signed.split_once('.')?.1).ok()?;
        let payload: Value = serde_json::from_slice(&payload).ok()?;
        let text = |pointer: &str| payload.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let claims = Claims {
            namespace: text("/kubernetes.io/namespace")?,
            name: text("/kubernetes.io/serviceaccount/name")?,
            uid: text("/kubernetes.io/serviceaccount/uid")?,
            audiences: payload["aud"]
                .as_array()?
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            expires: payload["exp"].as_i64()?,
        };
        (claims.expires > now).then_some(claims)
    }
}

/// Returns the HMAC-SHA256 (RFC 2104). The key must not be longer than a block.
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let pad = |with: u8| {
        let mut block = [with; BLOCK];
        for (byte, key) in block.iter_mut().zip(key) {
            *byte ^= key;
        }
        block
    };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        Claims {
            namespace: "a".to_owned(),
            name: "bot".to_owned(),
            uid: "u".to_owned(),
            audiences: vec![ISSUER.to_owned()],
            expires: 100,
        }
    }

    #[test]
    fn an_issuer_knows_its_own_tokens_until_they_expire() {
        let issuer = Issuer::new();
        let token = issuer.sign(&claims(), 10, "id");
        assert_eq!(issuer.verify(&token, 99), Some(claims()));
        assert_eq!(issuer.verify(&token, 100), None);
        assert_eq!(Issuer::new().verify(&token, 99), None);
        let identity = claims().identity();
        assert_eq!(identity.name(), "system:serviceaccount:a:bot");
        assert_eq!(
            identity.groups(),
            ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"]
        );
    }

    #[test]
    fn a_changed_token_is_not_valid() {
        let issuer = Issuer::new();
        let token = issuer.sign(&claims(), 10, "id");
        let (head, rest) = token.split_once('.').unwrap();
        let (payload, signature) = rest.split_once('.').unwrap();
        let other = URL_SAFE_NO_PAD.encode(json!({"sub": "root", "exp": 1_000}).to_string());
        assert_eq!(issuer.verify(&format!("{head}.{other}.{signature}"), 20), None);
        assert_eq!(issuer.verify(&format!("{head}.{payload}."), 20), None);
        assert_eq!(issuer.verify("", 20), None);
    }

    #[test]
    fn the_hmac_is_that_of_the_rfc() {
        // RFC 4231, test case 2.
        let code = hmac(b"Jefe", b"what do ya want for nothing?");
        let hex: String = code.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        assert_eq!(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
}
