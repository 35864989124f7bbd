//! The certificates with which the server verifies a conversion webhook.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use der::Decode;
use serde_json::Value;
use x509_cert::Certificate;

use super::text;

/// Returns why the certificates of the conversion webhook of a definition are invalid. Without certificates, those of the system
/// are used.
pub(super) fn problem(definition: &Value) -> Option<String> {
    let encoded = text(definition, &["spec", "conversion", "webhook", "clientConfig", "caBundle"]);
    let bundle = STANDARD.decode(encoded).unwrap_or_default();
    if bundle.is_empty() {
        return None;
    }
    let why = check(&bundle).err()?;
    Some(format!("unable to load root certificates: {why}"))
}

/// Checks that at least one block is a certificate. Other blocks are ignored.
fn check(bundle: &[u8]) -> Result<(), &'static str> {
    let blocks = pem::parse_many(bundle).unwrap_or_default();
    if blocks.is_empty() {
        return Err("unable to parse bytes as PEM block");
    }
    let mut certificates = blocks
        .iter()
        .filter(|block| block.tag() == "CERTIFICATE" && block.headers().iter().next().is_none())
        .map(|block| Certificate::from_der(block.contents()))
        .peekable();
    if certificates.peek().is_none() {
        return Err("no valid certificate authority data seen");
    }
    if certificates.any(|certificate| certificate.is_ok()) {
        return Ok(());
    }
    Err("failed to parse certificate: x509: malformed certificate")
}
