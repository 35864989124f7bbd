//! The signing key of service account tokens: JSON Web Tokens by ES256.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Claims;

/// The `iss` claim, and the audience of tokens for the API server itself.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";
/// How many tokens whose signature was checked are remembered.
const MAX_VERIFIED: usize = 4096;
/// The bytes before the point in the `SubjectPublicKeyInfo` of a P-256 key.
const KEY_INFO: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Signs tokens, and verifies those that it signed.
pub(crate) struct Issuer {
    key: EcdsaKeyPair,
    key_id: String,
    random: SystemRandom,
    /// Claims by the digests of their tokens.
    verified: Mutex<HashMap<[u8; 32], Arc<Claims>>>,
}

/// Why a token of this issuer is not valid.
pub(crate) type Invalid = String;

impl Issuer {
    /// Creates an issuer with a random key. The server's seed does not determine it. `None` if the operating system has
    /// no randomness.
    pub(crate) fn new() -> Option<Self> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).ok()?;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).ok()?;
        let id = Sha256::new().chain_update(KEY_INFO).chain_update(key.public_key()).finalize();
        Some(Self { key_id: URL_SAFE_NO_PAD.encode(id), key, random, verified: Mutex::default() })
    }

    /// Signs a token. `now` is in seconds since 1970; `None` if the operating system has no randomness.
    pub(crate) fn sign(&self, claims: &Claims, now: i64) -> Option<String> {
        let header = json!({"alg": "ES256", "kid": self.key_id});
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encode(&header), encode(&claims.payload(ISSUER, now)));
        let signature = self.key.sign(&self.random, signed.as_bytes()).ok()?;
        Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// Returns the claims of a token that this issuer signed, whether it has expired or not. `None` for a token that is
    /// not said to be of this issuer.
    ///
    /// # Errors
    /// The signature is not valid.
    pub(crate) fn verify(&self, token: &str) -> Option<Result<Arc<Claims>, Invalid>> {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(claims) = self.verified.lock().get(&digest) {
            return Some(Ok(Arc::clone(claims)));
        }
        let mut parts = token.split('.');
        let (header, payload, signature) = (parts.next()?, parts.next()?, parts.next()?);
        let decode = |part| URL_SAFE_NO_PAD.decode(part).ok();
        let parse = |part| serde_json::from_slice::<Value>(&decode(part)?).ok();
        let claims: Value = parse(payload)?;
        if parts.next().is_some() || claims["iss"] != ISSUER {
            return None;
        }
        let (header, signature) = (parse(header)?, decode(signature)?);
        if header.get("kid").is_some_and(|id| id != self.key_id.as_str()) {
            return Some(Err("invalid signature, no keys found".to_owned()));
        }
        let signed = token.rsplit_once('.').map_or("", |(signed, _)| signed);
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.public_key());
        if header["alg"] != "ES256" || key.verify(signed.as_bytes(), &signature).is_err() {
            return Some(Err("go-jose/go-jose: error in cryptographic primitive".to_owned()));
        }
        let claims = Arc::new(Claims::read(&claims)?);
        let mut verified = self.verified.lock();
        if verified.len() >= MAX_VERIFIED {
            verified.clear();
        }
        verified.insert(digest, Arc::clone(&claims));
        Some(Ok(claims))
    }

    /// Returns the JSON Web Key Set: the public key.
    pub(crate) fn key_set(&self) -> Value {
        // An uncompressed point: a byte, then the two coordinates.
        let point = self.key.public_key().as_ref();
        let coordinate = |bytes: Option<&[u8]>| URL_SAFE_NO_PAD.encode(bytes.unwrap_or_default());
        json!({"keys": [{
            "use": "sig",
            "kty": "EC",
            "kid": self.key_id,
            "crv": "P-256",
            "alg": "ES256",
            "x": coordinate(point.get(1..33)),
            "y": coordinate(point.get(33..65)),
        }]})
    }

    /// Returns the OpenID configuration of the issuer, whose keys are served at `host`.
    pub(crate) fn openid_configuration(host: &str) -> Value {
        json!({
            "issuer": ISSUER,
            "jwks_uri": format!("https://{host}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
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

    #[test]
    fn an_issuer_knows_its_own_tokens() {
        let issuer = Issuer::new().unwrap();
        let token = issuer.sign(&claims(), 10).unwrap();
        for _ in 0..2 {
            let read = issuer.verify(&token).unwrap().unwrap();
            assert_eq!(*read, claims());
        }
        let other = Issuer::new().unwrap().verify(&token).unwrap();
        assert_eq!(other.unwrap_err(), "invalid signature, no keys found");
    }

    #[test]
    fn a_changed_token_is_not_valid() {
        let issuer = Issuer::new().unwrap();
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
        let issuer = Issuer::new().unwrap();
        let set = issuer.key_set();
        let decode = |text: &Value| URL_SAFE_NO_PAD.decode(text.as_str().unwrap()).unwrap();
        let (x, y) = (decode(&set["keys"][0]["x"]), decode(&set["keys"][0]["y"]));
        let point = [vec![4], x, y].concat();
        let token = issuer.sign(&claims(), 10).unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        key.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
    }
}
