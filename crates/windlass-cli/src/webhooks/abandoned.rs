//! The remains of a killed operator's webhooks: configurations without a server, and certificates.

use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::Duration;

use http::Uri;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::Api;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::configurations::Configuration;
use super::{FOLDER, delete, name};
use crate::error::Result;
use crate::output::Output;
use crate::project::Workspace;

/// How long a webhook server may take to accept a connection.
const ACCEPTED_WITHIN: Duration = Duration::from_secs(2);

/// The age of a certificate after which a living operator must be listening.
const STARTED_WITHIN: Duration = Duration::from_mins(10);

/// Deletes the webhook configurations and certificates of an operator that was killed together with the
/// command.
///
/// The API server would refuse all writes that the webhooks look at.
pub(crate) async fn forget_abandoned(client: &Client, workspace: &Workspace, out: &mut Output) -> Result<()> {
    remove_certificates(&workspace.root.join(FOLDER));
    let name = name(workspace);
    let mutating = forget::<MutatingWebhookConfiguration>(client, &name).await?;
    let validating = forget::<ValidatingWebhookConfiguration>(client, &name).await?;
    if mutating || validating {
        out.line("webhooks: removed those of an operator that was killed");
    }
    Ok(())
}

/// Deletes a configuration if all webhooks of the configuration are on this machine and refuse connections.
/// Returns whether the configuration was deleted.
async fn forget<K: Configuration>(client: &Client, name: &str) -> Result<bool> {
    let api: Api<K> = Api::all(client.clone());
    // A user without the right to read configurations has not written any.
    let found = match api.get_opt(name).await {
        Err(kube::Error::Api(status)) if status.code == 403 => None,
        found => found?,
    };
    let Some(found) = found else { return Ok(false) };
    for url in found.urls() {
        if !is_here(url) || !refuses(url).await {
            return Ok(false);
        }
    }
    delete(&api, &found).await?;
    Ok(true)
}

/// Gives a CRD the conversion of `crd`, in place of a conversion by a URL that refuses connections. An install would keep the URL, because
/// `windlass run` may serve there.
pub(crate) async fn replace_refused(client: &Client, crd: &Value, out: &mut Output) -> Result<()> {
    let name = crd["metadata"]["name"].as_str().unwrap_or_default();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let (Some(live), Some(own)) = (definitions.get_opt(name).await?, crd.pointer("/spec/conversion")) else {
        return Ok(());
    };
    let webhook = live.spec.conversion.and_then(|conversion| conversion.webhook?.client_config?.url);
    if let Some(url) = webhook
        && own["strategy"] == "Webhook"
        && refuses(&url).await
    {
        out.line(match windlass_dev::set_conversion(client, name, Some(own), None).await {
            Ok(_) => format!("replaced the conversion of {name}: {url} refuses connections"),
            // Another field manager owns the URL.
            Err(error) => {
                format!("note: the conversion of {name} stays, although {url} refuses connections: {error}")
            }
        });
    }
    Ok(())
}

/// Returns whether the host of a URL is an address of this machine.
fn is_here(url: &str) -> bool {
    address(url).is_some_and(|(host, _)| TcpListener::bind((host, 0)).is_ok())
}

/// Returns whether the host of a URL is an address that refuses connections to the port.
///
/// A host name may have another meaning at the API server, and an address that does not respond may be reachable from the API server.
async fn refuses(url: &str) -> bool {
    let Some(address) = address(url) else { return false };
    let connected = timeout(ACCEPTED_WITHIN, TcpStream::connect(address)).await;
    matches!(connected, Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused)
}

/// Returns the host and port of a URL, if the host is an address.
fn address(url: &str) -> Option<(IpAddr, u16)> {
    let url = url.parse::<Uri>().ok()?;
    let host = url.host()?.trim_matches(['[', ']']);
    let host = if host == "localhost" { Ipv4Addr::LOCALHOST.into() } else { host.parse().ok()? };
    Some((host, url.port_u16().unwrap_or(443)))
}

/// Removes the certificates of ports on which no program listens.
fn remove_certificates(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let port = entry.file_name().to_str().and_then(|name| name.parse::<u16>().ok());
        let age = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .ok()
            .and_then(|time| time.elapsed().ok());
        if port.is_some_and(is_free) && age.is_some_and(|age| age > STARTED_WITHIN) {
            // A folder that cannot be removed does no harm.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::SocketAddr;
    use std::time::SystemTime;

    use tokio::net::TcpSocket;

    use super::*;

    #[tokio::test]
    async fn only_an_address_without_a_server_refuses_connections() {
        let url = |address: SocketAddr| format!("https://{address}/convert");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let answered = url(listener.local_addr().expect("an address"));
        // A bound socket that does not listen keeps the port.
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
        let refused = url(socket.local_addr().expect("an address"));
        assert!(refuses(&refused).await && is_here(&refused));
        assert!(!refuses(&answered).await && is_here(&answered));
        for other in ["https://demo.invalid/convert", "no url"] {
            assert!(!refuses(other).await && !is_here(other));
        }
        assert!(!is_here("https://192.0.2.1:9/convert"));
    }

    #[test]
    fn only_old_certificates_of_free_ports_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let taken = listener.local_addr().expect("an address").port();
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .expect("a port")
            .local_addr()
            .expect("an address")
            .port();
        let path = |port: u16| folder.path().join(port.to_string());
        for port in [taken, free] {
            fs::create_dir(path(port)).expect("created");
        }
        remove_certificates(folder.path());
        assert!(path(free).exists(), "an operator may be starting");
        for port in [taken, free] {
            let old = SystemTime::now() - 2 * STARTED_WITHIN;
            File::open(path(port)).and_then(|folder| folder.set_modified(old)).expect("set");
        }
        remove_certificates(folder.path());
        assert!(path(taken).exists() && !path(free).exists());
    }
}
