//! Digests of blobs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The length of a SHA-256, in hexadecimal digits.
const HEX: usize = 64;

/// The SHA-256 of a blob, written `sha256:…` with 64 lower-case hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

impl Digest {
    /// Computes the digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(bytes);
        hasher.finish()
    }

    /// Returns the hexadecimal digits.
    pub fn hex(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (algorithm, hex) = text.split_once(':').ok_or("invalid checksum digest format")?;
        if algorithm != "sha256" {
            return Err("unsupported digest algorithm".to_owned());
        }
        if hex.len() != HEX {
            return Err("invalid checksum digest length".to_owned());
        }
        if !hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err("invalid checksum digest format".to_owned());
        }
        Ok(Self(hex.to_owned()))
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// Computes a digest from parts.
#[derive(Clone, Debug, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Makes a hasher that has seen no bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest of all bytes.
    pub fn finish(self) -> Digest {
        let mut hex = String::with_capacity(HEX);
        for byte in self.0.finalize() {
            for half in [byte >> 4, byte & 0xf] {
                hex.push(char::from_digit(half.into(), 16).unwrap_or('0'));
            }
        }
        Digest(hex)
    }
}

/// Returns the chain ID of layers: the digest that names the files of all layers together. Returns `None` without layers.
pub fn chain_id(diff_ids: &[Digest]) -> Option<Digest> {
    let (first, rest) = diff_ids.split_first()?;
    Some(
        rest.iter().fold(first.clone(), |chain, diff_id| Digest::of(format!("{chain} {diff_id}").as_bytes())),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_its_text() {
        let digest = Digest::of(b"");
        assert_eq!(
            digest.to_string(),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(digest.to_string().parse(), Ok(digest));
    }

    #[test]
    fn other_texts_are_refused() {
        let upper = format!("sha256:{}", "A".repeat(64));
        for text in ["", "sha256:", "sha256:../../etc/passwd", "sha512:00", &upper] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
