//! The files in which Docker and podman keep names and passwords.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Login;
use crate::{Error, Reference, Result};

/// The key of `docker.io`.
const DOCKER_HUB: &str = "https://index.docker.io/v1/";

/// The longest wait for a credential helper. A helper may ask a person.
const HELPER_TIMEOUT: Duration = Duration::from_secs(60);

/// The longest answer of a credential helper, in bytes.
const LONGEST_ANSWER: u64 = 1 << 16;

/// The name with which a credential helper marks an identity token.
const TOKEN_USER: &str = "<token>";

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    auths: BTreeMap<String, Auth>,
    creds_store: Option<String>,
    cred_helpers: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Auth {
    #[serde(rename = "auth")]
    encoded: String,
    username: String,
    password: String,
    #[serde(rename = "identitytoken")]
    identity_token: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

/// The files of a user, in the order in which the files are asked.
pub(super) struct DockerConfigs {
    files: Vec<PathBuf>,
}

impl DockerConfigs {
    pub(super) fn of_user() -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(file) = variable("REGISTRY_AUTH_FILE") {
            return Self { files: vec![file] };
        }
        let home = variable("HOME");
        let docker = variable("DOCKER_CONFIG").or_else(|| Some(home.as_ref()?.join(".docker")));
        let config = variable("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
        let files = [
            docker.map(|folder| folder.join("config.json")),
            variable("XDG_RUNTIME_DIR").map(|folder| folder.join("containers/auth.json")),
            config.map(|folder| folder.join("containers/auth.json")),
        ];
        Self { files: files.into_iter().flatten().collect() }
    }

    /// Returns the login of the first file that has a login for the repository.
    pub(super) async fn login(&self, reference: &Reference) -> Result<Option<Login>> {
        for file in &self.files {
            let text = match std::fs::read(file) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                text => text.map_err(|error| Error::storage("read", file, error))?,
            };
            // The file's content is secret: the error names only its place.
            let config: Config = serde_json::from_slice(&text).map_err(|error| {
                Error::Invalid(format!(
                    "{} is invalid at line {}, column {}",
                    file.display(),
                    error.line(),
                    error.column()
                ))
            })?;
            if let Some(login) = config.login(reference, file).await? {
                return Ok(Some(login));
            }
        }
        Ok(None)
    }
}

impl Config {
    async fn login(&self, reference: &Reference, file: &Path) -> Result<Option<Login>> {
        let server = if reference.registry() == "docker.io" { DOCKER_HUB } else { reference.registry() };
        let helper = self.cred_helpers.iter().find(|(key, _)| registry_of(key) == registry_of(server));
        if let Some(helper) = helper.map(|(_, helper)| helper).or(self.creds_store.as_ref())
            && let Some(login) = ask(helper, server).await?
        {
            return Ok(Some(login));
        }
        let best =
            self.auths.iter().filter(|(key, _)| covers(key, reference)).max_by_key(|(key, _)| key.len());
        best.map_or(Ok(None), |(key, auth)| auth.login(key, file))
    }
}

impl Auth {
    fn login(&self, key: &str, file: &Path) -> Result<Option<Login>> {
        if !self.identity_token.is_empty() {
            return Ok(Some(Login::IdentityToken(self.identity_token.clone())));
        }
        if !self.username.is_empty() {
            return Ok(Some(Login::password(&self.username, &self.password)));
        }
        if self.encoded.is_empty() {
            return Ok(None);
        }
        let decoded = STANDARD.decode(&self.encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let pair = decoded.as_deref().and_then(|text| text.trim_end_matches('\0').split_once(':'));
        let Some((user, password)) = pair else {
            return Err(Error::Invalid(format!(
                "{}: the value of auths[{key:?}].auth is invalid",
                file.display()
            )));
        };
        Ok(Some(Login::password(user, password)))
    }
}

/// Returns the registry of a key: keys of old files are URLs.
fn registry_of(key: &str) -> &str {
    let key = key.split_once("://").map_or(key, |(_, rest)| rest);
    match key.split('/').next().unwrap_or_default() {
        "index.docker.io" | "registry-1.docker.io" => "docker.io",
        registry => registry,
    }
}

/// Returns whether a key is for a repository: a registry, a URL of the registry, or a registry with the first parts of the repository.
fn covers(key: &str, reference: &Reference) -> bool {
    if registry_of(key) != reference.registry() {
        return false;
    }
    if key.contains("://") {
        return true;
    }
    let prefix = key.split_once('/').map_or("", |(_, prefix)| prefix.trim_end_matches('/'));
    let rest = reference.repository().strip_prefix(prefix);
    prefix.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Asks a credential helper. Returns `None` if the helper has no login.
async fn ask(helper: &str, server: &str) -> Result<Option<Login>> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if helper.is_empty() || !helper.bytes().all(is_name) {
        return Err(Error::Invalid(format!("{helper:?} is no name of a credential helper")));
    }
    let program = format!("docker-credential-{helper}");
    let answer = tokio::time::timeout(HELPER_TIMEOUT, run(&program, server)).await;
    let answer =
        answer.map_err(|_| Error::Unavailable(format!("{program} did not answer in {HELPER_TIMEOUT:?}")))?;
    let answer = answer.map_err(|error| Error::Unavailable(format!("cannot run {program}: {error}")))?;
    // A helper without a login says so, and fails.
    let Ok(answer) = serde_json::from_slice::<Answer>(&answer) else { return Ok(None) };
    Ok(Some(match answer.username.as_str() {
        TOKEN_USER => Login::IdentityToken(answer.secret),
        user => Login::password(user, answer.secret),
    }))
}

async fn run(program: &str, server: &str) -> std::io::Result<Vec<u8>> {
    let mut command = tokio::process::Command::new(program);
    command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A helper may end without reading.
        let _ = stdin.write_all(server.as_bytes()).await;
    }
    let mut answer = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(LONGEST_ANSWER).read_to_end(&mut answer).await?;
    }
    let status = child.wait().await?;
    Ok(if status.success() { answer } else { Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn login(config: &str, image: &str) -> Option<Login> {
        let config: Config = serde_json::from_str(config).expect("a configuration");
        config.login(&image.parse().expect("a name"), Path::new("config.json")).await.expect("read")
    }

    #[tokio::test]
    async fn the_longest_key_wins() {
        let config = r#"{"auths": {
            "https://index.docker.io/v1/": {"auth": "aHViOnB3"},
            "mock.com:5000": {"username": "all", "password": "1"},
            "mock.com:5000/team": {"username": "team", "password": "2"},
            "token.io": {"identitytoken": "t"}, "empty.io": {}}}"#;
        assert_eq!(login(config, "web").await, Some(Login::password("hub", "pw")));
        assert_eq!(login(config, "mock.com:5000/web").await, Some(Login::password("all", "1")));
        assert_eq!(login(config, "mock.com:5000/team/web").await, Some(Login::password("team", "2")));
        assert_eq!(login(config, "mock.com:5000/teams/web").await, Some(Login::password("all", "1")));
        assert_eq!(login(config, "token.io/web").await, Some(Login::IdentityToken("t".into())));
        assert_eq!(login(config, "empty.io/web").await, None);
        assert_eq!(login(config, "mock.com/web").await, None);
    }

    #[tokio::test]
    async fn a_helper_with_a_path_is_refused() {
        assert!(ask("../evil", "x").await.is_err());
    }

    #[test]
    fn debug_output_has_no_password() {
        let shown = format!("{:?} {:?}", Login::password("me", "pw1"), Login::IdentityToken("pw2".into()));
        assert!(shown.contains("me") && !shown.contains("pw"), "{shown}");
    }
}
