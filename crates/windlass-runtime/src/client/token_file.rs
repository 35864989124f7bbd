//! A bearer token in a file, such as that of a pod's service account.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use http::HeaderValue;
use kube_client::config::AuthInfo;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::error::{Error, Result};

/// How long a token is used before the file is read again, as client-go: 10 s less than a minute.
const MAX_AGE: Duration = Duration::from_secs(50);

/// A token that is read again when old, and after a refusal by the server.
pub(super) struct TokenFile {
    path: PathBuf,
    last: Mutex<Token>,
}

struct Token {
    /// The value of the header `Authorization`.
    header: HeaderValue,
    read_at: Instant,
    refused: bool,
}

impl TokenFile {
    /// Takes the token file out of a configuration that uses a token file. As with kubectl, the file
    /// overrides a token in the kubeconfig; the token in the kubeconfig is used if the file cannot be read.
    ///
    /// # Errors
    /// The file cannot be read, or has no token, and the configuration has no other token.
    pub(super) fn take(auth: &mut AuthInfo) -> Result<Option<Self>> {
        if auth.auth_provider.is_some() || auth.username.is_some() {
            return Ok(None);
        }
        let Some(path) = auth.token_file.take() else { return Ok(None) };
        match Self::open(path.into(), Instant::now()) {
            Ok(file) => {
                auth.token = None;
                Ok(Some(file))
            }
            Err(_) if auth.token.is_some() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn open(path: PathBuf, now: Instant) -> Result<Self> {
        let header = read(&path)?;
        Ok(Self { path, last: Mutex::new(Token { header, read_at: now, refused: false }) })
    }

    /// Returns the value of the header `Authorization`. A file that cannot be read any more leaves the last token in use.
    pub(super) fn header(&self, now: Instant) -> HeaderValue {
        let mut last = self.last.lock();
        if last.refused || now.saturating_duration_since(last.read_at) >= MAX_AGE {
            match read(&self.path) {
                Ok(header) => last.header = header,
                Err(error) => tracing::warn!(%error, "the last token is used"),
            }
            last.read_at = now;
            last.refused = false;
        }
        last.header.clone()
    }

    /// Notes that the server did not accept the token of a request that was sent at that time.
    pub(super) fn refused(&self, sent: Instant) {
        let mut last = self.last.lock();
        last.refused |= last.read_at <= sent;
    }
}

fn read(path: &Path) -> Result<HeaderValue> {
    let failed = |reason: String| Error::setup(format!("token file {}: {reason}", path.display()));
    let token = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    if token.trim().is_empty() {
        return Err(failed("is empty".to_owned()));
    }
    let mut header = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
        .map_err(|_| failed("has characters that no token has".to_owned()))?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Setting {
        folder: tempfile::TempDir,
        begun: Instant,
    }

    impl Setting {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().expect("a folder"), begun: Instant::now() }
        }

        fn path(&self) -> PathBuf {
            self.folder.path().join("token")
        }

        fn write(&self, token: &str) {
            fs::write(self.path(), token).expect("written");
        }

        fn after(&self, seconds: u64) -> Instant {
            self.begun + Duration::from_secs(seconds)
        }
    }

    fn auth(path: &Path, token: Option<&str>) -> AuthInfo {
        let auth = serde_json::json!({ "tokenFile": path, "token": token });
        serde_json::from_value(auth).expect("a user")
    }

    #[tokio::test]
    async fn a_token_is_read_again_after_50_s() {
        let setting = Setting::new();
        setting.write("one\n");
        let file = TokenFile::open(setting.path(), setting.begun).expect("a token");
        setting.write("two\n");
        assert_eq!(file.header(setting.after(49)), "Bearer one");
        assert_eq!(file.header(setting.after(50)), "Bearer two");
        assert!(file.header(setting.after(50)).is_sensitive());
        fs::remove_file(setting.path()).expect("removed");
        assert_eq!(file.header(setting.after(120)), "Bearer two");
    }

    #[tokio::test]
    async fn a_token_that_was_refused_is_read_again_at_once() {
        let setting = Setting::new();
        setting.write("one");
        let file = TokenFile::open(setting.path(), setting.begun).expect("a token");
        setting.write("two");
        file.refused(setting.after(1));
        assert_eq!(file.header(setting.after(2)), "Bearer two");
        setting.write("three");
        // The answer to a request that had the token before.
        file.refused(setting.after(1));
        assert_eq!(file.header(setting.after(3)), "Bearer two");
    }

    #[tokio::test]
    async fn the_file_goes_before_a_token_of_the_kubeconfig() {
        let setting = Setting::new();
        let mut both = auth(&setting.path(), Some("inline"));
        assert!(TokenFile::take(&mut both).expect("the other one").is_none());
        assert!(both.token.is_some());
        let error = TokenFile::take(&mut auth(&setting.path(), None)).err().expect("no file").to_string();
        assert!(
            error.starts_with(&format!("token file {}: No such file", setting.path().display())),
            "{error}"
        );
        setting.write(" \n");
        let error = TokenFile::take(&mut auth(&setting.path(), None)).err().expect("no token").to_string();
        assert!(error.ends_with("is empty"), "{error}");
        setting.write("one");
        let mut both = auth(&setting.path(), Some("inline"));
        assert!(TokenFile::take(&mut both).expect("a token").is_some());
        assert!(both.token.is_none() && both.token_file.is_none());
        assert!(TokenFile::take(&mut AuthInfo::default()).expect("none").is_none());
    }
}
