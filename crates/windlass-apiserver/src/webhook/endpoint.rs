//! The address of a webhook, from a `clientConfig`.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use serde_json::Value;

/// The default port of a service reference.
const DEFAULT_PORT: u16 = 443;

/// The address of a webhook, and the trusted certificates.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    /// The `clientConfig` as JSON: endpoints with equal configurations share connections.
    id: Arc<str>,
    pub(super) location: Location,
    /// The `caBundle`, PEM. Empty for the certificates that the system trusts.
    pub(super) ca_bundle: Vec<u8>,
    /// True if any certificate is accepted.
    pub(super) is_unverified: bool,
}

/// Where a webhook is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// At a URL. The query of the URL is not used.
    Url { base: String, is_loopback: bool },
    /// Behind a service of the cluster.
    Service { namespace: String, name: String, port: u16, path: String },
    /// Nowhere: the configuration is wrong, for the reason given.
    Nowhere(String),
}

impl Endpoint {
    /// Reads a `clientConfig`.
    pub(crate) fn of(config: &Value) -> Self {
        let text = |value: &Value, field: &str| {
            value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let location = match config.get("service").filter(|service| service.is_object()) {
            Some(service) => Location::Service {
                namespace: text(service, "namespace"),
                name: text(service, "name"),
                port: service
                    .get("port")
                    .and_then(Value::as_u64)
                    .and_then(|port| u16::try_from(port).ok())
                    .unwrap_or(DEFAULT_PORT),
                path: text(service, "path"),
            },
            None => Self::at_url(&text(config, "url")),
        };
        let ca_bundle = STANDARD.decode(text(config, "caBundle")).unwrap_or_default();
        Self { id: config.to_string().into(), location, ca_bundle, is_unverified: false }
    }

    /// Sets whether any certificate is accepted.
    pub(crate) fn unverified(self, is_unverified: bool) -> Self {
        let id = if is_unverified { format!("{} unverified", self.id).into() } else { self.id };
        Self { id, is_unverified, ..self }
    }

    fn at_url(url: &str) -> Location {
        if url.is_empty() {
            return Location::Nowhere("webhook configuration must have either service or URL".to_owned());
        }
        match url.parse::<Uri>() {
            Ok(uri) if uri.host().is_some() => Location::Url {
                base: format!(
                    "{}://{}{}",
                    uri.scheme_str().unwrap_or("https"),
                    uri.authority().map_or("", http::uri::Authority::as_str),
                    clean(uri.path())
                ),
                is_loopback: uri.host().is_some_and(is_loopback),
            },
            Ok(_) => Location::Nowhere("Unparsable URL: it has no host".to_owned()),
            Err(error) => Location::Nowhere(format!("Unparsable URL: {error}")),
        }
    }

    /// Identifies endpoints that share connections.
    pub(crate) fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Returns the URL of a call. The timeout tells the webhook how long the caller waits.
    pub(super) fn uri(&self, timeout: Duration) -> Result<Uri, String> {
        let mut url = match &self.location {
            Location::Url { base, .. } => base.clone(),
            Location::Service { namespace, name, port, path } => {
                format!("https://{name}.{namespace}.svc:{port}{}", clean(path))
            }
            Location::Nowhere(why) => return Err(why.clone()),
        };
        let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
        // Writing to a string does not fail.
        let _ = write!(url, "?timeout={seconds}s");
        url.parse().map_err(|error| format!("Unparsable URL: {error}"))
    }

    /// Returns the name that the certificate must be for.
    pub(super) fn server_name(&self, host: &str) -> String {
        match &self.location {
            Location::Service { namespace, name, .. } => format!("{name}.{namespace}.svc"),
            _ => host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        }
    }

    /// Returns whether HTTP/2 may be spoken. kube-apiserver speaks HTTP/2 only on loopback, because over
    /// HTTP/2 all calls would go to one of several backends.
    pub(super) fn may_use_http2(&self) -> bool {
        matches!(self.location, Location::Url { is_loopback: true, .. })
    }
}

/// Removes empty segments and dots from a path, as Go's client does: servers redirect from other paths.
fn clean(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            _ => segments.push(segment),
        }
    }
    segments.iter().fold(String::new(), |path, segment| path + "/" + segment)
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_path_is_clean() {
        let uri = |config| Endpoint::of(&config).uri(Duration::from_secs(10)).unwrap().to_string();
        assert_eq!(
            uri(json!({"url": "https://127.0.0.1:9443//failing"})),
            "https://127.0.0.1:9443/failing?timeout=10s"
        );
        assert_eq!(
            uri(json!({"url": "https://a.example.com/x/./y/../z/"})),
            "https://a.example.com/x/z?timeout=10s"
        );
        let service = json!({"service": {"namespace": "n", "name": "s", "path": "x//y"}});
        assert_eq!(uri(service), "https://s.n.svc:443/x/y?timeout=10s");
    }
}
