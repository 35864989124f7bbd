//! The certificate of the webhook server, and the certificate's authority.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use windlass_runtime::webhook::certificates::{CertificateDurations, CertificateState, Rotation, ServedAt};

use crate::error::Result;

/// A certificate with the key and the authority, in PEM.
pub(super) struct Certificate {
    /// The authority.
    pub(super) authority: Vec<u8>,
    chain: Vec<u8>,
    key: Vec<u8>,
}

impl Certificate {
    /// Issues a certificate for a host of this machine, with a new authority.
    pub(super) fn issue(host: &str, port: u16) -> Result<Self> {
        let location = ServedAt::Url { host: host.to_owned(), port };
        let own = ["127.0.0.1", "localhost"].map(str::to_owned);
        let rotation = Rotation::new(location, CertificateDurations::default()).names(own);
        let nothing = CertificateState { secret: None, objects: &[], serving: None };
        let issued = rotation.plan(Timestamp::now(), nothing).map_err(|error| error.to_string())?;
        let mut data = issued.secret.map(|secret| secret.data).unwrap_or_default();
        let mut part = |name: &str| data.remove(name).unwrap_or_default();
        Ok(Self { authority: part("ca.crt"), chain: part("tls.crt"), key: part("tls.key") })
    }

    /// Writes the files of the server at a port, readable only by the owner, and returns the folder of the
    /// files below `folder`.
    ///
    /// Two runs in one project have different ports: an operator reads the files again, and must not find the
    /// files of the other run.
    pub(super) fn write(&self, folder: &Path, port: u16) -> Result<PathBuf> {
        let folder = folder.join(port.to_string());
        fs::create_dir_all(&folder)?;
        for (name, contents) in [("tls.crt", &self.chain), ("tls.key", &self.key)] {
            let path = folder.join(name);
            // The mode is that of a new file.
            if path.exists() {
                fs::remove_file(&path)?;
            }
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(contents)?;
        }
        Ok(folder)
    }
}

/// Returns the certificates of a PEM text as DER.
pub(super) fn der(pem: &[u8]) -> Result<Vec<Vec<u8>>> {
    let certificates: Vec<Vec<u8>> = CertificateDer::pem_slice_iter(pem)
        .map(|certificate| certificate.map(|der| der.to_vec()))
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| error.to_string())?;
    Ok(certificates)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_key_is_for_its_owner_only_and_each_start_has_another_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut seen = Vec::new();
        for port in [1, 1, 2] {
            let issued = Certificate::issue("127.0.0.1", port).expect("issued");
            let key = issued.write(folder.path(), port).expect("written").join("tls.key");
            assert_eq!(der(&issued.authority).expect("PEM").len(), 1);
            assert_eq!(fs::metadata(&key).expect("a file").permissions().mode() & 0o777, 0o600);
            seen.push((fs::read_to_string(&key).expect("a key"), key));
        }
        assert_ne!(seen[0].0, seen[1].0);
        let (second, path) = &seen[1];
        assert_eq!(
            &fs::read_to_string(path).expect("a key"),
            second,
            "a run at another port leaves it alone"
        );
    }
}
