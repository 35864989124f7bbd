//! Parses the path and query of a request, as kube-apiserver does.

use std::borrow::Cow;

use http::Method;
use windlass_kinds::Subresource;

use crate::verb::Verb;
use windlass_kinds::resources::NAMESPACES;

/// The decoded query of a request. A key may occur more than once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: Option<&str>) -> Self {
        let pairs = text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                // Go drops malformed pairs, and does not treat a semicolon as a separator.
                .filter(|pair| !pair.contains(';') && is_escaped_well(pair))
                .map(|pair| {
                    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (percent_decode(key, true).into_owned(), percent_decode(value, true).into_owned())
                })
                .collect(),
        )
    }

    /// Returns the first value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Returns the first value of a key, or the empty string.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.get(key).unwrap_or_default()
    }

    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Parses a flag like kube-apiserver: `0` and `false` are false, any other value is true; `None` for a
    /// missing flag.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        self.get(key).map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// Returns whether the client wants indented JSON; `None` without the parameter. Unlike for a flag, a
    /// value that is not a boolean of Go is false.
    pub(crate) fn pretty(&self) -> Option<bool> {
        let value = self.get("pretty").filter(|value| !value.is_empty());
        value.map(|value| matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True"))
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

/// Returns whether two hexadecimal digits follow each percent sign.
fn is_escaped_well(text: &str) -> bool {
    let is_hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    text.split('%').skip(1).map(str::as_bytes).all(|rest| is_hex(rest.first()) && is_hex(rest.get(1)))
}

/// The parts of a path under `/api/v1` or `/apis/GROUP/VERSION`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) verb: Verb,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) resource: String,
    pub(crate) name: String,
    pub(crate) subresource: Subresource,
    /// The path after the subresource, with slashes, for proxies.
    pub(crate) subpath: String,
    /// True if the path has segments after the subresource.
    pub(crate) has_more: bool,
    /// True if the verb is a part of the path: `/api/v1/watch/pods`.
    pub(crate) has_verb: bool,
}

impl Route {
    /// Parses the decoded path of a request; `None` for a path without a resource (discovery, health, …).
    pub(crate) fn parse(method: &Method, path: &str, query: &Query) -> Option<Self> {
        // An empty name of a namespace stands for all namespaces.
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, version, mut rest) = match segments[..] {
            ["api", version, ref rest @ ..] => ("", version, rest),
            ["apis", group, version, ref rest @ ..] => (group, version, rest),
            _ => return None,
        };
        if rest.is_empty() {
            return None;
        }
        let mut route = Self { group: group.to_owned(), version: version.to_owned(), ..Self::default() };
        let in_path = |verb: &Verb| verb.as_str() == rest[0] && rest.len() > 1;
        let verb_in_path = [Verb::Watch, Verb::Proxy].into_iter().find(in_path);
        if verb_in_path.is_some() {
            route.has_verb = true;
            rest = &rest[1..];
        }
        let mut is_inside = false;
        if rest[0] == &*NAMESPACES.resource
            && let Some(namespace) = rest.get(1)
        {
            route.namespace = (*namespace).to_owned();
            is_inside = rest.get(2).is_some_and(|part| !["status", "finalize"].contains(part));
            if is_inside {
                rest = &rest[2..];
            }
        }
        route.has_more = rest.len() > 3;
        let mut parts = rest.iter().map(|part| (*part).to_owned());
        route.resource = parts.next().unwrap_or_default();
        route.name = parts.next().unwrap_or_default();
        route.subresource = Subresource::named(&parts.next().unwrap_or_default());
        if !route.subresource.is_empty() {
            route.subpath = subpath(parts, path.ends_with('/'));
        }
        if route.resource == *NAMESPACES.resource && route.group.is_empty() && !is_inside {
            // A Namespace object is not in a namespace, although authorization treats the object as inside.
            route.namespace.clear();
        }
        let named = !route.name.is_empty();
        route.verb = verb_in_path.unwrap_or_else(|| verb(method, named, query));
        Some(route)
    }

    /// Returns whether a path has a verb without a resource, such as `/api/v1/watch`.
    pub(crate) fn is_unclear(path: &str) -> bool {
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        matches!(segments[..], ["api", _, "watch" | "proxy"] | ["apis", _, _, "watch" | "proxy"])
    }
}

/// Returns the verb of a request for a collection or a named object.
fn verb(method: &Method, named: bool, query: &Query) -> Verb {
    match *method {
        // The path of an object is a get, with `watch` in the query too.
        Method::GET if !named && wants_watch(query) => Verb::Watch,
        Method::GET | Method::HEAD if named => Verb::Get,
        Method::GET | Method::HEAD => Verb::List,
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE if named => Verb::Delete,
        Method::DELETE => Verb::DeleteCollection,
        _ => Verb::None,
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
        assert_eq!(route("/apis/apps/v1/watch/deployments").verb, Verb::Watch);
        let query = Query::parse(Some("watch=1&fieldSelector=metadata.name%3Dx"));
        let route = Route::parse(&Method::GET, "/api/v1/pods", &query).unwrap();
        assert_eq!(route.verb, Verb::Watch);
        assert_eq!(query.text("fieldSelector"), "metadata.name=x");
    }

    #[test]
    fn discovery_is_no_resource() {
        assert_eq!(Route::parse(&Method::GET, "/apis/apps/v1", &Query::default()), None);
        assert_eq!(Route::parse(&Method::GET, "/version", &Query::default()), None);
    }
}
