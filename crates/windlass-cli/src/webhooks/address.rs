//! The address at which the API server reaches this machine.

use std::net::IpAddr;

/// The address at which the API server reaches this machine.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// The loopback address: the server is on this machine.
    Loopback,
    /// An address that the user has named.
    Named(String),
    /// The server is on another machine, and no address was named.
    Unreachable,
}

impl Address {
    /// Chooses the address for a server, given as the URL of a kubeconfig.
    pub(super) fn choose(named: Option<&str>, server: &str) -> Self {
        match named {
            Some(host) => Self::Named(host.trim_matches(['[', ']']).to_owned()),
            None if is_loopback(server) => Self::Loopback,
            None => Self::Unreachable,
        }
    }

    /// Returns the host in the form of a certificate.
    pub(super) fn host(&self) -> &str {
        match self {
            Self::Named(host) => host,
            Self::Loopback | Self::Unreachable => "127.0.0.1",
        }
    }

    /// Returns the URL of a port.
    pub(super) fn url(&self, port: u16) -> String {
        let host = self.host();
        if host.contains(':') { format!("https://[{host}]:{port}") } else { format!("https://{host}:{port}") }
    }
}

/// Reads the host of `--webhook-host`: an IP address, or a DNS name.
pub(super) fn host(text: &str) -> Result<String, String> {
    let is_address = text.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
    };
    if is_address || text.split('.').all(is_label) {
        return Ok(text.to_owned());
    }
    Err("expected an IP address or a DNS name, without a scheme and a port".to_owned())
}

fn is_loopback(server: &str) -> bool {
    let Ok(url) = server.parse::<http::Uri>() else { return false };
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::{Address, host};

    #[test]
    fn a_server_on_this_machine_calls_the_loopback_address() {
        for server in ["https://127.0.0.1:6443", "https://localhost:1/", "https://[::1]:6443"] {
            assert_eq!(Address::choose(None, server), Address::Loopback, "{server}");
        }
        for server in
            ["https://10.0.0.1:6443", "https://k8s.example.com", "", "https://localhost.example.com"]
        {
            assert_eq!(Address::choose(None, server), Address::Unreachable, "{server}");
        }
        assert_eq!(Address::Loopback.url(1), "https://127.0.0.1:1");
    }

    #[test]
    fn a_host_is_an_address_or_a_name() {
        for right in ["10.0.0.1", "fd00::1", "[fd00::1]", "host.docker.internal", "laptop"] {
            assert_eq!(host(right).as_deref(), Ok(right));
        }
        for wrong in ["", "https://10.0.0.1", "10.0.0.1:443", "a b", "a..b", "-a"] {
            assert!(host(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_named_address_goes_before() {
        let named = Address::choose(Some("[fd00::1]"), "https://127.0.0.1:6443");
        assert_eq!((named.host(), named.url(2)), ("fd00::1", "https://[fd00::1]:2".to_owned()));
    }
}
