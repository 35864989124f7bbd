//! The keys of service account tokens.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use der::asn1::{BitString, ObjectIdentifier, UintRef};
use der::{Decode, Encode, Sequence};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED, EcdsaKeyPair,
    RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey, VerificationAlgorithm,
};
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");

/// How service account tokens are signed and verified: the flags `--service-account-*` of kube-apiserver.
///
/// ```
/// use windlass_apiserver::{Server, TokenKeys};
///
/// # let pem = "-----BEGIN PRIVATE KEY-----
/// # MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgco5wBo37KktXW5IV
/// # 4MGEchCpUaFD5CFF/S/yHeDY8eWhRANCAARf74zRwmqN7yEbqmwTWUk8js14uTLY
/// # xCmnLFhnRj+cDtOqf8qpoa3/mAvQkF5ochsYFhr7UNNp/OMSHJqf9r6v
/// # -----END PRIVATE KEY-----";
/// let keys = TokenKeys::new("https://issuer.example.com", pem.as_bytes())?;
/// let server = Server::builder().token_keys(keys).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct TokenKeys {
    issuer: String,
    audiences: Vec<String>,
    signer: Signer,
    verifiers: Vec<PublicKey>,
}

/// A text has no key for tokens.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TokenKeyError(String);

impl TokenKeys {
    /// Signs and verifies tokens of `issuer` by a private key: PEM, of RSA or of the curves P-256 and P-384.
    ///
    /// # Errors
    /// The text has no such key.
    pub fn new(issuer: impl Into<String>, private_key: &[u8]) -> Result<Self, TokenKeyError> {
        let key = PrivateKeyDer::from_pem_slice(private_key)
            .map_err(|error| TokenKeyError(format!("no private key in the PEM text: {error}")))?;
        let issuer = issuer.into();
        let signer = Signer::of(&key)?;
        Ok(Self { audiences: vec![issuer.clone()], issuer, verifiers: vec![signer.public.clone()], signer })
    }

    /// Signs tokens by a new key. `None` if the operating system has no randomness.
    pub(crate) fn generate(issuer: &str) -> Option<Self> {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).ok()?;
        let signer = Signer::of(&PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pkcs8.as_ref()))).ok()?;
        let issuer = issuer.to_owned();
        Some(Self { audiences: vec![issuer.clone()], issuer, verifiers: vec![signer.public.clone()], signer })
    }

    /// Verifies tokens by the keys of a text too: PEM, with public keys, certificates or private keys.
    ///
    /// # Errors
    /// The text has no key.
    pub fn verify_with(mut self, keys: &[u8]) -> Result<Self, TokenKeyError> {
        let found = public_keys(keys)?;
        for key in found {
            if self.verifiers.iter().all(|known| known.id != key.id) {
                self.verifiers.push(key);
            }
        }
        Ok(self)
    }

    /// Sets the audiences of tokens for this server. Default: the issuer.
    #[must_use]
    pub fn with_audiences(mut self, audiences: Vec<String>) -> Self {
        self.audiences = audiences;
        self
    }

    pub(super) fn issuer(&self) -> &str {
        &self.issuer
    }

    pub(crate) fn audiences(&self) -> &[String] {
        &self.audiences
    }

    /// Signs a token with this payload. `None` if the operating system has no randomness.
    pub(super) fn sign(&self, payload: &Value) -> Option<String> {
        let public = &self.signer.public;
        let header = json!({"alg": public.algorithm.name(), "kid": public.id});
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encode(&header), encode(payload));
        let signature = self.signer.sign(signed.as_bytes())?;
        Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// Returns whether a key made the signature of a token.
    ///
    /// # Errors
    /// The error, in the words of kube-apiserver.
    pub(super) fn verify(&self, header: &Value, signed: &[u8], signature: &[u8]) -> Result<(), String> {
        let id = header.get("kid").and_then(Value::as_str);
        let mut candidates = self.verifiers.iter().filter(|key| id.is_none_or(|id| id == key.id)).peekable();
        if candidates.peek().is_none() {
            return Err("invalid signature, no keys found".to_owned());
        }
        let fits = |key: &PublicKey| header["alg"] == key.algorithm.name() && key.verify(signed, signature);
        if candidates.any(fits) {
            Ok(())
        } else {
            Err("go-jose/go-jose: error in cryptographic primitive".to_owned())
        }
    }

    /// Returns the JSON Web Key Set: the public keys.
    pub(crate) fn key_set(&self) -> Value {
        json!({"keys": self.verifiers.iter().filter_map(PublicKey::to_jwk).collect::<Vec<_>>()})
    }

    /// Returns the names of the algorithms of the keys.
    pub(super) fn algorithms(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.verifiers.iter().map(|key| key.algorithm.name()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl fmt::Debug for TokenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenKeys").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// A signature algorithm of JSON Web Tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Rs256,
    Es256,
    Es384,
}

impl Algorithm {
    fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
        }
    }

    fn scheme(self) -> SignatureScheme {
        match self {
            Self::Rs256 => SignatureScheme::RSA_PKCS1_SHA256,
            Self::Es256 => SignatureScheme::ECDSA_NISTP256_SHA256,
            Self::Es384 => SignatureScheme::ECDSA_NISTP384_SHA384,
        }
    }

    fn verification(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Self::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
            Self::Es256 => &ECDSA_P256_SHA256_FIXED,
            Self::Es384 => &ECDSA_P384_SHA384_FIXED,
        }
    }

    /// Returns the bytes of a coordinate; `None` for RSA.
    fn coordinate_size(self) -> Option<usize> {
        match self {
            Self::Rs256 => None,
            Self::Es256 => Some(32),
            Self::Es384 => Some(48),
        }
    }

    fn of(algorithm: &AlgorithmIdentifierOwned) -> Option<Self> {
        if algorithm.oid == RSA {
            return Some(Self::Rs256);
        }
        let curve = algorithm.parameters.as_ref()?.decode_as::<ObjectIdentifier>().ok()?;
        match curve {
            P256 if algorithm.oid == EC => Some(Self::Es256),
            P384 if algorithm.oid == EC => Some(Self::Es384),
            _ => None,
        }
    }
}

/// The private key that signs.
#[derive(Clone)]
struct Signer {
    key: Arc<dyn rustls::sign::SigningKey>,
    public: PublicKey,
}

impl Signer {
    fn of(key: &PrivateKeyDer<'_>) -> Result<Self, TokenKeyError> {
        let unfit = || TokenKeyError("the private key is none of RSA, P-256 or P-384".to_owned());
        let key = any_supported_type(key).map_err(|_| unfit())?;
        let public = key.public_key().ok_or_else(unfit)?;
        Ok(Self { public: PublicKey::of(public.as_ref()).ok_or_else(unfit)?, key })
    }

    fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let algorithm = self.public.algorithm;
        let signature = self.key.choose_scheme(&[algorithm.scheme()])?.sign(message).ok()?;
        match algorithm.coordinate_size() {
            None => Some(signature),
            Some(size) => fixed_signature(&signature, size),
        }
    }
}

/// Converts an ECDSA signature from DER to the two concatenated numbers of a token.
fn fixed_signature(signature: &[u8], size: usize) -> Option<Vec<u8>> {
    #[derive(Sequence)]
    struct Numbers<'a> {
        r: UintRef<'a>,
        s: UintRef<'a>,
    }
    let numbers = Numbers::from_der(signature).ok()?;
    let mut fixed = Vec::with_capacity(2 * size);
    for number in [numbers.r, numbers.s] {
        let bytes = number.as_bytes();
        fixed.resize(fixed.len() + size.checked_sub(bytes.len())?, 0);
        fixed.extend_from_slice(bytes);
    }
    Some(fixed)
}

/// A key that verifies.
#[derive(Clone)]
struct PublicKey {
    algorithm: Algorithm,
    /// The digest of the `SubjectPublicKeyInfo`.
    id: String,
    /// A point, or the two numbers of an RSA key in DER.
    bits: Vec<u8>,
}

impl PublicKey {
    /// Parses a `SubjectPublicKeyInfo`; `None` for another kind of key.
    fn of(info: &[u8]) -> Option<Self> {
        let parsed = SubjectPublicKeyInfoOwned::from_der(info).ok()?;
        Some(Self {
            algorithm: Algorithm::of(&parsed.algorithm)?,
            id: URL_SAFE_NO_PAD.encode(Sha256::digest(info)),
            bits: parsed.subject_public_key.as_bytes()?.to_vec(),
        })
    }

    fn verify(&self, signed: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(self.algorithm.verification(), &self.bits).verify(signed, signature).is_ok()
    }

    fn to_jwk(&self) -> Option<Value> {
        let mut key = json!({"use": "sig", "kid": self.id, "alg": self.algorithm.name()});
        let mut set = |name: &str, bytes: &[u8]| key[name] = URL_SAFE_NO_PAD.encode(bytes).into();
        if let Some(size) = self.algorithm.coordinate_size() {
            // An uncompressed point: a byte, then the two coordinates.
            set("x", self.bits.get(1..=size)?);
            set("y", self.bits.get(1 + size..)?);
            key["kty"] = "EC".into();
            key["crv"] = if size == 32 { "P-256" } else { "P-384" }.into();
        } else {
            let numbers = RsaNumbers::from_der(&self.bits).ok()?;
            set("n", numbers.modulus.as_bytes());
            set("e", numbers.exponent.as_bytes());
            key["kty"] = "RSA".into();
        }
        Some(key)
    }
}

/// `RSAPublicKey` of RFC 8017.
#[derive(Sequence)]
struct RsaNumbers<'a> {
    modulus: UintRef<'a>,
    exponent: UintRef<'a>,
}

/// Parses the public keys of a PEM text. The result has at least one key.
fn public_keys(pem: &[u8]) -> Result<Vec<PublicKey>, TokenKeyError> {
    let blocks = pem::parse_many(pem).map_err(|error| TokenKeyError(format!("not PEM: {error}")))?;
    let mut keys = Vec::new();
    for block in blocks {
        let key = match block.tag() {
            "PUBLIC KEY" => PublicKey::of(SubjectPublicKeyInfoDer::from(block.contents()).as_ref()),
            "RSA PUBLIC KEY" => rsa_info(block.contents()).and_then(|info| PublicKey::of(&info)),
            "CERTIFICATE" => of_certificate(&CertificateDer::from(block.contents())),
            tag if tag.ends_with("PRIVATE KEY") => {
                let text = pem::encode(&block);
                let key = PrivateKeyDer::from_pem_slice(text.as_bytes()).ok();
                key.and_then(|key| Signer::of(&key).ok()).map(|signer| signer.public)
            }
            // Parameters of curves stand beside keys in some files.
            _ => continue,
        };
        let tag = block.tag();
        keys.push(key.ok_or_else(|| TokenKeyError(format!("a {tag} is none of RSA, P-256 or P-384")))?);
    }
    if keys.is_empty() {
        return Err(TokenKeyError("no key in the PEM text".to_owned()));
    }
    Ok(keys)
}

fn of_certificate(certificate: &CertificateDer<'_>) -> Option<PublicKey> {
    let certificate = x509_cert::Certificate::from_der(certificate).ok()?;
    PublicKey::of(&certificate.tbs_certificate.subject_public_key_info.to_der().ok()?)
}

/// Wraps the two numbers of an RSA key.
fn rsa_info(numbers: &[u8]) -> Option<Vec<u8>> {
    let info = SubjectPublicKeyInfoOwned {
        algorithm: AlgorithmIdentifierOwned { oid: RSA, parameters: Some(der::asn1::Null.into()) },
        subject_public_key: BitString::from_bytes(numbers).ok()?,
    };
    info.to_der().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const P256_KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgco5wBo37KktXW5IV
4MGEchCpUaFD5CFF/S/yHeDY8eWhRANCAARf74zRwmqN7yEbqmwTWUk8js14uTLY
xCmnLFhnRj+cDtOqf8qpoa3/mAvQkF5ochsYFhr7UNNp/OMSHJqf9r6v
-----END PRIVATE KEY-----
";
    const RSA_KEY: &str = include_str!("token_keys/rsa.pem");

    /// Signs, and returns the header, the signed text, and the signature.
    fn sign(keys: &TokenKeys) -> (Value, String, Vec<u8>) {
        let token = keys.sign(&json!({"iss": keys.issuer()})).unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let header = URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap()).unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        (serde_json::from_slice(&header).unwrap(), signed.to_owned(), signature)
    }

    #[test]
    fn keys_of_all_kinds_sign_and_verify() {
        for (pem, algorithm) in [(P256_KEY, "ES256"), (RSA_KEY, "RS256")] {
            let keys = TokenKeys::new("me", pem.as_bytes()).unwrap();
            let (header, signed, signature) = sign(&keys);
            assert_eq!(header["alg"], algorithm);
            keys.verify(&header, signed.as_bytes(), &signature).unwrap();
            assert!(keys.verify(&header, b"other", &signature).is_err());
            let none = json!({"alg": "none"});
            assert!(keys.verify(&none, signed.as_bytes(), b"").is_err());
            assert_eq!(keys.key_set()["keys"][0]["kid"], header["kid"]);
        }
    }

    #[test]
    fn tokens_of_an_earlier_key_are_verified_if_its_file_is_given() {
        let earlier = TokenKeys::new("me", RSA_KEY.as_bytes()).unwrap();
        let (header, signed, signature) = sign(&earlier);
        let keys = TokenKeys::new("me", P256_KEY.as_bytes()).unwrap();
        assert!(keys.verify(&header, signed.as_bytes(), &signature).is_err());
        let keys = keys.verify_with(RSA_KEY.as_bytes()).unwrap();
        keys.verify(&header, signed.as_bytes(), &signature).unwrap();
        assert_eq!(keys.algorithms(), ["ES256", "RS256"]);
    }

    #[test]
    fn a_certificate_has_a_key_too() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::default().self_signed(&key).unwrap();
        let signing = TokenKeys::new("me", key.serialize_pem().as_bytes()).unwrap();
        let found = public_keys(certificate.pem().as_bytes()).unwrap();
        assert_eq!(found[0].id, signing.signer.public.id);
        let public = key.public_key_pem();
        assert_eq!(public_keys(public.as_bytes()).unwrap()[0].id, signing.signer.public.id);
    }

    #[test]
    fn a_text_without_a_key_is_an_error() {
        assert!(TokenKeys::new("me", b"").is_err());
        assert!(
            TokenKeys::new("me", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").is_err()
        );
        let keys = TokenKeys::new("me", P256_KEY.as_bytes()).unwrap();
        assert!(keys.clone().verify_with(b"nothing").is_err());
        assert!(keys.verify_with(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").is_err());
    }
}
