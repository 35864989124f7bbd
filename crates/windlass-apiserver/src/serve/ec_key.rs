//! Private keys in the format that every client reads.

use der::asn1::{BitString, ObjectIdentifier, OctetString};
use der::{Decode, Encode, Sequence};
use pem::{EncodeConfig, LineEnding, Pem};
use x509_cert::spki::AlgorithmIdentifierOwned;

/// Converts an elliptic curve key from PKCS#8, DER, to SEC1, PEM (`BEGIN EC PRIVATE KEY`).
///
/// Some clients, such as fabric8's for Java, read only SEC1.
pub(super) fn sec1_pem(pkcs8: &[u8]) -> Result<String, der::Error> {
    let key = PrivateKeyInfo::from_der(pkcs8)?;
    let mut ec_key = EcPrivateKey::from_der(key.private_key.as_bytes())?;
    // In PKCS#8, the curve is a parameter of the algorithm; in SEC1, a part of the key.
    let curve = key.algorithm.parameters.and_then(|curve| curve.decode_as().ok());
    ec_key.parameters = curve.or(ec_key.parameters);
    let pem = Pem::new("EC PRIVATE KEY", ec_key.to_der()?);
    Ok(pem::encode_config(&pem, EncodeConfig::new().set_line_ending(LineEnding::LF)))
}

/// `PrivateKeyInfo` of RFC 5208, without attributes.
#[derive(Sequence)]
struct PrivateKeyInfo {
    version: u8,
    algorithm: AlgorithmIdentifierOwned,
    private_key: OctetString,
}

/// `ECPrivateKey` of RFC 5915.
#[derive(Sequence)]
struct EcPrivateKey {
    version: u8,
    private_key: OctetString,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    parameters: Option<ObjectIdentifier>,
    #[asn1(context_specific = "1", tag_mode = "EXPLICIT", optional = "true")]
    public_key: Option<BitString>,
}

#[cfg(test)]
mod tests {
    use rustls_pki_types::PrivateKeyDer;
    use rustls_pki_types::pem::PemObject;

    use super::*;

    #[test]
    fn a_converted_key_is_the_same_key() {
        let key = rcgen::KeyPair::generate().unwrap();
        let text = sec1_pem(&key.serialize_der()).unwrap();
        assert!(text.starts_with("-----BEGIN EC PRIVATE KEY-----\n"), "{text}");
        assert!(text.ends_with("-----END EC PRIVATE KEY-----\n"), "{text}");
        let read = PrivateKeyDer::from_pem_slice(text.as_bytes()).unwrap();
        assert!(matches!(read, PrivateKeyDer::Sec1(_)));
        let signer = rustls::crypto::ring::sign::any_ecdsa_type(&read).unwrap();
        assert_eq!(
            signer.public_key().unwrap().as_ref(),
            rcgen::PublicKeyData::subject_public_key_info(&key)
        );
        let EcPrivateKey { parameters, .. } = EcPrivateKey::from_der(read.secret_der()).unwrap();
        let prime256v1 = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
        assert_eq!(parameters, Some(prime256v1), "Go needs the curve");
    }

    #[test]
    fn bytes_that_are_not_a_key_are_an_error() {
        assert!(sec1_pem(b"").is_err());
        assert!(sec1_pem(b"not a key").is_err());
    }
}
