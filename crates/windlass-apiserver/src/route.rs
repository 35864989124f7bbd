//! Parses the path and query of a request, as kube-apiserver does.

use std::borrow::Cow;

use http::Method;

/// The decoded query of a request. A key may occur more than once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: Option<&str>) -> Self {
        let pairs = text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| {
                    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (percent_decode(key, true).into_owned(), percent_decode(value, true).into_owned())
                })
                .collect(),
        )
    }

    /// The first value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The first value of a key, the empty string if it is absent.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.get(key).unwrap_or_default()
    }

    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Reads a flag as kube-apiserver does: `0` and `false` are false, any other value is true; `None` if it is absent.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        self.get(key).map(|value| !matches!(value, "0" | "false" | "False" | "FALSE" | "f" | "F"))
    }
}

/// Decodes percent encoding. With `plus`, as in queries, `+` is a space.
pub(crate) fn percent_decode(text: &str, plus: bool) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    if !bytes.iter().any(|byte| *byte == b'%' || plus && *byte == b'+') {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
        match (bytes[at], hex(bytes.get(at + 1)), hex(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or_default());
                at += 2;
            }
            (b'+', ..) if plus => out.push(b' '),
            (byte, ..) => out.push(byte),
        }
        at += 1;
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

/// The parts of a path under `/api/v1` or `/apis/GROUP/VERSION`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) verb: &'static str,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) resource: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
    /// The path after the subresource, with its slashes, for proxies.
    pub(crate) subpath: String,
}

impl Route {
    /// Parses the path of a request; `None` if it is not that of a resource (discovery, health, …).
    pub(crate) fn parse(method: &Method, path: &str, query: &Query) -> Option<Self> {
        // An empty name of a namespace stands for all of them.
        let segments = path.trim_matches('/').split('/');
        let segments: Vec<Cow<'_, str>> = segments.map(|segment| percent_decode(segment, false)).collect();
        let (group, version, mut rest) = match segments.as_slice() {
            [api, version, rest @ ..] if api == "api" => ("", version, rest),
            [apis, group, version, rest @ ..] if apis == "apis" => (&**group, version, rest),
            _ => return None,
        };
        if rest.is_empty() {
            return None;
        }
        let mut route = Self { group: group.to_owned(), version: version.to_string(), ..Self::default() };
        let watch_prefix = rest[0] == "watch" && rest.len() > 1;
        if watch_prefix {
            rest = &rest[1..];
        }
        let mut is_inside = false;
        if rest[0] == "namespaces"
            && let Some(namespace) = rest.get(1)
        {
            route.namespace = namespace.to_string();
            is_inside = rest.get(2).is_some_and(|part| part != "status" && part != "finalize");
            if is_inside {
                rest = &rest[2..];
            }
        }
        let mut parts = rest.iter().map(ToString::to_string);
        route.resource = parts.next().unwrap_or_default();
        route.name = parts.next().unwrap_or_default();
        route.subresource = parts.next().unwrap_or_default();
        if !route.subresource.is_empty() {
            route.subpath = subpath(parts, path.ends_with('/'));
        }
        if route.resource == "namespaces" && route.group.is_empty() && !is_inside {
            // A namespace is not in a namespace, though authorisation treats it so.
            route.namespace.clear();
        }
        let named = !route.name.is_empty();
        route.verb = match *method {
            // The path of an object is a get, with `watch` in the query too.
            Method::GET if watch_prefix || !named && wants_watch(query) => "watch",
            Method::GET | Method::HEAD if named => "get",
            Method::GET | Method::HEAD => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if named => "delete",
            Method::DELETE => "deletecollection",
            _ => "",
        };
        Some(route)
    }
}

/// Joins the segments after a subresource. A slash at the end of the path is kept.
fn subpath(segments: impl Iterator<Item = String>, ends_with_slash: bool) -> String {
    let mut subpath: String = segments.flat_map(|segment| ["/".to_owned(), segment]).collect();
    if ends_with_slash {
        subpath.push('/');
    }
    subpath
}

fn wants_watch(query: &Query) -> bool {
    query.flag("watch").unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(path: &str) -> Route {
        Route::parse(&Method::GET, path, &Query::default()).unwrap()
    }

    #[test]
    fn namespaces_are_a_scope_and_a_resource() {
        assert_eq!(route("/api/v1/namespaces").resource, "namespaces");
        let all = route("/api/v1/namespaces//configmaps");
        assert_eq!((all.namespace.as_str(), all.resource.as_str()), ("", "configmaps"));
        let one = route("/api/v1/namespaces/a");
        assert_eq!((one.resource.as_str(), one.name.as_str()), ("namespaces", "a"));
        let status = route("/api/v1/namespaces/a/finalize");
        assert_eq!((status.name.as_str(), status.subresource.as_str()), ("a", "finalize"));
        let pod = route("/api/v1/namespaces/a/pods/b/log");
        assert_eq!(
            (pod.namespace.as_str(), pod.resource.as_str(), pod.name.as_str(), pod.subresource.as_str()),
            ("a", "pods", "b", "log")
        );
    }

    #[test]
    fn the_path_after_a_subresource_keeps_its_slashes() {
        let subpath = |path: &str| route(path).subpath;
        assert_eq!(subpath("/api/v1/nodes/a/proxy"), "");
        assert_eq!(subpath("/api/v1/nodes/a/proxy/"), "/");
        assert_eq!(subpath("/api/v1/nodes/a/proxy/b/c"), "/b/c");
        assert_eq!(subpath("/api/v1/namespaces/n/pods/a/proxy/b/"), "/b/");
    }

    #[test]
    fn watching_has_two_spellings() {
        assert_eq!(route("/apis/apps/v1/watch/deployments").verb, "watch");
        let query = Query::parse(Some("watch=1&fieldSelector=metadata.name%3Dx"));
        let route = Route::parse(&Method::GET, "/api/v1/pods", &query).unwrap();
        assert_eq!(route.verb, "watch");
        assert_eq!(query.text("fieldSelector"), "metadata.name=x");
    }

    #[test]
    fn discovery_is_no_resource() {
        assert_eq!(Route::parse(&Method::GET, "/apis/apps/v1", &Query::default()), None);
        assert_eq!(Route::parse(&Method::GET, "/version", &Query::default()), None);
    }
}
