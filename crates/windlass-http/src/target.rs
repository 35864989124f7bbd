//! The address of the server and the headers of all requests.

use http::{
    HeaderMap, Request, Uri,
    uri::{Authority, PathAndQuery, Scheme},
};
use kube_client::{Config, client::ConfigExt};
use tower::Layer;

use crate::{
    credentials::HeaderSink,
    error::{Error, Result},
};

/// The address of the server and the headers of all requests.
#[derive(Debug)]
pub(crate) struct Target {
    scheme: Scheme,
    authority: Authority,
    /// The path before the path of each request, without a slash at the end. Empty for most servers.
    base_path: String,
    headers: HeaderMap,
}

impl Target {
    pub(crate) fn new(config: &Config) -> Result<Self> {
        let parts = config.cluster_url.clone().into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(Error::setup("the address", "no https:// and host in the URL of the API server"));
        };
        let base_path = parts.path_and_query.map_or_else(String::new, |path| path.path().to_owned());
        let layer = config.extra_headers_layer().map_err(|error| Error::setup("a header", error))?;
        Ok(Self {
            scheme,
            authority,
            base_path: base_path.trim_end_matches('/').to_owned(),
            headers: HeaderSink::headers_of(&mut layer.layer(HeaderSink))?,
        })
    }

    /// Returns the host and port of the server.
    pub(crate) fn server(&self) -> &str {
        self.authority.as_str()
    }

    /// Returns the URL of the server, for connectors.
    pub(crate) fn url(&self) -> Result<Uri> {
        self.resolve(PathAndQuery::from_static("/"))
    }

    /// Returns true if connections to the server are encrypted.
    pub(crate) fn is_tls(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// Puts the address of the server and the headers of all requests into a request.
    pub(crate) fn apply<B>(&self, request: &mut Request<B>) -> Result<()> {
        let path = std::mem::take(request.uri_mut()).into_parts().path_and_query;
        *request.uri_mut() = self.resolve(path.unwrap_or(PathAndQuery::from_static("/")))?;
        self.add_headers(request.headers_mut());
        Ok(())
    }

    /// Adds the headers of all requests.
    pub(crate) fn add_headers(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.headers {
            headers.append(name.clone(), value.clone());
        }
    }

    /// Returns the URL of a path.
    pub(crate) fn resolve(&self, path: PathAndQuery) -> Result<Uri> {
        let path = if self.base_path.is_empty() {
            path
        } else {
            PathAndQuery::try_from(format!("{}{path}", self.base_path))
                .map_err(|error| Error::setup("the path", error))?
        };
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(path);
        Uri::from_parts(parts).map_err(|error| Error::setup("the address", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(server: &str, uri: &str) -> String {
        let target = Target::new(&Config::new(server.parse().expect("a URL"))).expect("a target");
        let mut request = Request::get(uri).body(()).expect("a request");
        target.apply(&mut request).expect("applied");
        request.uri().to_string()
    }

    #[test]
    fn a_request_goes_to_the_server_below_its_path() {
        assert_eq!(
            resolved("https://a:6443", "/api/v1/nodes?limit=1"),
            "https://a:6443/api/v1/nodes?limit=1"
        );
        assert_eq!(resolved("https://a/k8s/c-1/", "/api?x=y"), "https://a/k8s/c-1/api?x=y");
    }

    #[test]
    fn impersonation_and_the_headers_of_the_configuration_are_sent() {
        let mut config = Config::new("https://a".parse().expect("a URL"));
        config.auth_info.impersonate = Some("jane".to_owned());
        config.auth_info.impersonate_groups = Some(vec!["dev".to_owned(), "ops".to_owned()]);
        config.headers.push((http::header::USER_AGENT, http::HeaderValue::from_static("mine")));
        let mut request = Request::get("/").body(()).expect("a request");
        Target::new(&config).expect("a target").apply(&mut request).expect("applied");
        assert_eq!(request.headers()["impersonate-user"], "jane");
        assert_eq!(request.headers().get_all("impersonate-group").iter().count(), 2);
        assert_eq!(request.headers()["user-agent"], "mine");
    }

    #[test]
    fn an_address_without_a_scheme_is_refused() {
        let error = Target::new(&Config::new(Uri::from_static("/path"))).expect_err("no host").to_string();
        assert_eq!(error, "the address of the client's configuration");
    }
}
