//! The issuer of service account tokens (JSON Web Tokens).

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::legacy_token::LEGACY_ISSUER;
use super::{Claims, LegacyClaims, TokenKeys};

/// The default issuer.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";
/// The number of remembered tokens with a checked signature.
const MAX_VERIFIED: usize = 4096;

/// Signs tokens, and verifies the issuer's own tokens.
pub(crate) struct Issuer {
    keys: TokenKeys,
    /// Claims by the digest of the token.
    verified: Mutex<HashMap<[u8; 32], Verified>>,
}

/// The claims of a token with a valid signature.
#[derive(Clone, Debug)]
pub(crate) enum Verified {
    /// A token that was requested.
    Requested(Arc<Claims>),
    /// A token in a Secret.
    Legacy(Arc<LegacyClaims>),
}

/// Why a token of this issuer is not valid.
pub(crate) type Invalid = String;

impl Issuer {
    pub(crate) fn new(keys: TokenKeys) -> Self {
        Self { keys, verified: Mutex::default() }
    }

    /// Returns the audiences of tokens for this API server.
    pub(crate) fn audiences(&self) -> &[String] {
        self.keys.audiences()
    }

    /// Signs a token. `now` is in seconds since 1970; `None` if the operating system has no randomness.
    pub(crate) fn sign(&self, claims: &Claims, now: i64) -> Option<String> {
        self.keys.sign(&claims.payload(self.keys.issuer(), now))
    }

    /// Signs a token for a Secret. `None` if the operating system has no randomness.
    pub(crate) fn sign_legacy(&self, claims: &LegacyClaims) -> Option<String> {
        self.keys.sign(&claims.payload())
    }

    /// Returns the claims of a token that this issuer signed, even of an expired token. Returns `None` for a
    /// token with another issuer.
    ///
    /// # Errors
    /// The signature is not valid.
    pub(crate) fn verify(&self, token: &str) -> Option<Result<Verified, Invalid>> {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(claims) = self.verified.lock().get(&digest) {
            return Some(Ok(claims.clone()));
        }
        let mut parts = token.split('.');
        let (header, payload, signature) = (parts.next()?, parts.next()?, parts.next()?);
        let decode = |part| URL_SAFE_NO_PAD.decode(part).ok();
        let parse = |part| serde_json::from_slice::<Value>(&decode(part)?).ok();
        let claims: Value = parse(payload)?;
        let is_legacy = claims["iss"] == LEGACY_ISSUER;
        if parts.next().is_some() || !(is_legacy || claims["iss"] == self.keys.issuer()) {
            return None;
        }
        let (header, signature) = (parse(header)?, decode(signature)?);
        let signed = token.rsplit_once('.').map_or("", |(signed, _)| signed);
        if let Err(why) = self.keys.verify(&header, signed.as_bytes(), &signature) {
            return Some(Err(why));
        }
        let claims = if is_legacy {
            match LegacyClaims::read(&claims) {
                Ok(claims) => Verified::Legacy(Arc::new(claims)),
                Err(why) => return Some(Err(why)),
            }
        } else {
            Verified::Requested(Arc::new(Claims::read(&claims)?))
        };
        let mut verified = self.verified.lock();
        if verified.len() >= MAX_VERIFIED {
            verified.clear();
        }
        verified.insert(digest, claims.clone());
        Some(Ok(claims))
    }

    /// Returns the JSON Web Key Set: the public keys.
    pub(crate) fn key_set(&self) -> Value {
        self.keys.key_set()
    }

    /// Returns the OpenID configuration of the issuer. The keys are served at `host`.
    pub(crate) fn openid_configuration(&self, host: &str) -> Value {
        json!({
            "issuer": self.keys.issuer(),
            "jwks_uri": format!("https://{host}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": self.keys.algorithms(),
        })
    }
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
            id: "id".to_owned(),
            ..Claims::default()
        }
    }

    fn issuer() -> Issuer {
        Issuer::new(TokenKeys::generate(ISSUER).unwrap())
    }

    #[test]
    fn an_issuer_knows_its_own_tokens() {
        let issuer = issuer();
        let token = issuer.sign(&claims(), 10).unwrap();
        for _ in 0..2 {
            let read = issuer.verify(&token).unwrap().unwrap();
            assert!(matches!(read, Verified::Requested(read) if *read == claims()));
        }
        let other = self::issuer().verify(&token).unwrap();
        assert_eq!(other.unwrap_err(), "invalid signature, no keys found");
    }

    #[test]
    fn a_changed_token_is_not_valid() {
        let issuer = issuer();
        let token = issuer.sign(&claims(), 10).unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        let other = issuer.sign(&Claims { name: "root".to_owned(), ..claims() }, 10).unwrap();
        let other = other.split('.').nth(1).unwrap();
        assert!(issuer.verify(&format!("{}.{other}.{}", parts[0], parts[2])).unwrap().is_err());
        assert!(issuer.verify(&format!("{}.{}.", parts[0], parts[1])).unwrap().is_err());
        let unsigned = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
        assert!(issuer.verify(&format!("{unsigned}.{}.", parts[1])).unwrap().is_err());
        assert!(issuer.verify("").is_none() && issuer.verify("a.b.c").is_none());
    }

    #[test]
    fn the_key_set_verifies_tokens() {
        let issuer = issuer();
        let set = issuer.key_set();
        let decode = |text: &Value| URL_SAFE_NO_PAD.decode(text.as_str().unwrap()).unwrap();
        let (x, y) = (decode(&set["keys"][0]["x"]), decode(&set["keys"][0]["y"]));
        let point = [vec![4], x, y].concat();
        let token = issuer.sign(&claims(), 10).unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let key = ring::signature::UnparsedPublicKey::new(&ring::signature::ECDSA_P256_SHA256_FIXED, point);
        key.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
    }
}
