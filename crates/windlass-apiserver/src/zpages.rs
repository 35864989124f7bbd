//! `/statusz` and `/flagz` (KEP-4827, KEP-4828): the server and the flags for a person, or as an object of `config.k8s.io`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use http::header::{ACCEPT, CONTENT_TYPE, WARNING};
use http::{HeaderMap, HeaderValue, Request, Response};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use windlass_schema::Catalog;

use crate::body::Body;
use crate::respond;
use crate::wire::{ApiError, Chosen, Format, Negotiated, Offer, WantedKind, to_yaml};

const MEDIA_TYPES: &[&str] = &["application/json", "application/yaml", "text/plain"];

const STATUSZ: Offer = Offer {
    media_types: MEDIA_TYPES,
    streamed: &[],
    allows: |media_type, kind| is_page(media_type, kind, "Statusz"),
};

const FLAGZ: Offer = Offer {
    media_types: MEDIA_TYPES,
    streamed: &[],
    allows: |media_type, kind| is_page(media_type, kind, "Flagz"),
};

/// The media types of an error.
const ERROR: Offer = Offer {
    media_types: &["application/json", "application/yaml"],
    streamed: &[],
    allows: |_, kind| kind.is_none(),
};

/// The text has no kind, and the objects have a kind.
fn is_page(media_type: &str, kind: Option<&WantedKind>, page: &str) -> bool {
    let Some(kind) = kind else { return media_type == "text/plain" };
    let is_version = matches!(&*kind.version, "v1alpha1" | "v1beta1");
    media_type != "text/plain" && kind.kind == page && kind.group == "config.k8s.io" && is_version
}

/// The facts about a server that the pages show.
pub(crate) struct Facts<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) started: Timestamp,
    pub(crate) now: Timestamp,
    pub(crate) flags: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a, P> {
    kind: &'a str,
    api_version: String,
    metadata: Metadata,
    #[serde(flatten)]
    content: P,
}

#[derive(Serialize)]
struct Metadata {
    name: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Statusz {
    start_time: String,
    uptime_seconds: i64,
    go_version: &'static str,
    binary_version: String,
    emulation_version: String,
    paths: [&'static str; 7],
}

#[derive(Serialize)]
struct Flagz<'a> {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    flags: &'a BTreeMap<String, String>,
}

/// Answers a request for a page; `None` if the path names no page.
pub(crate) fn respond(
    facts: &Facts<'_>,
    path: &str,
    request: &Request<impl Sized>,
) -> Option<Response<Body>> {
    let (offer, page) = match path {
        "/statusz" => (STATUSZ, "statusz"),
        "/flagz" => (FLAGZ, "flagz"),
        _ => return None,
    };
    let accept = accept(request.headers()).trim();
    let chosen = offer.choose(accept);
    let kind = chosen.as_ref().and_then(|chosen| chosen.kind.as_ref());
    let (Some(chosen), Some(kind)) = (&chosen, kind) else {
        let is_text = accept.is_empty() || chosen.is_some();
        return Some(if is_text { text(facts, page) } else { refusal(request) });
    };
    let pretty = chosen.pretty || respond::wants_pretty(request.headers(), request.uri().query());
    let response = match page {
        "statusz" => object(chosen, kind, facts.statusz(), pretty),
        _ => object(chosen, kind, Flagz { flags: facts.flags }, pretty),
    };
    let response = response.map(|mut response| {
        if kind.version == "v1alpha1" {
            let warning = format!(
                "299 - \"This version of the {page} endpoint is deprecated. Please use a newer version.\""
            );
            response.headers_mut().extend(HeaderValue::try_from(warning).map(|warning| (WARNING, warning)));
        }
        response
    });
    Some(response.unwrap_or_else(|error| respond::error(&error, request.headers(), request.uri().query())))
}

fn accept(headers: &HeaderMap) -> &str {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns the response to a client that accepts no form of a page.
fn refusal(request: &Request<impl Sized>) -> Response<Body> {
    let negotiated = ERROR.choose(accept(request.headers())).map(|chosen| Negotiated {
        format: if chosen.media_type == "application/yaml" { Format::Yaml } else { Format::Json },
        pretty: chosen.pretty,
        ..Negotiated::default()
    });
    let error = ApiError::not_acceptable(MEDIA_TYPES);
    respond::error_in(&error, negotiated, request.headers(), request.uri().query())
}

fn object(
    chosen: &Chosen,
    kind: &WantedKind,
    content: impl Serialize,
    pretty: bool,
) -> Result<Response<Body>, ApiError> {
    let api_version = kind.api_version();
    let page = Page { kind: &kind.kind, api_version, metadata: Metadata { name: "apiserver" }, content };
    let json = serde_json::to_vec(&page).map_err(ApiError::internal)?;
    let body = match chosen.media_type {
        "application/yaml" => {
            to_yaml(&serde_json::from_slice(&json).map_err(ApiError::internal)?)?.into_bytes()
        }
        _ if pretty => respond::indent(&json),
        _ => respond::line(&json),
    };
    let mut response = Response::new(Body::full(body));
    let content_type =
        HeaderValue::try_from(kind.content_type(chosen.media_type)).map_err(ApiError::internal)?;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    Ok(response)
}

/// Writes a page for a person.
fn text(facts: &Facts<'_>, page: &str) -> Response<Body> {
    let mut text = format!(
        "\napiserver {page}\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
         guarantees and is for debugging purposes only.\n"
    );
    if page == "statusz" {
        facts.write_status(&mut text);
    } else {
        text.extend(facts.flags.iter().map(|(name, value)| format!("{name}={value}\n")));
    }
    let mut response = Response::new(Body::full(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

impl Facts<'_> {
    fn uptime(&self) -> i64 {
        (self.now.as_second() - self.started.as_second()).max(0)
    }

    fn statusz(&self) -> Statusz {
        Statusz {
            start_time: crate::store::rfc3339(self.started),
            uptime_seconds: self.uptime(),
            go_version: "none",
            binary_version: self.catalog.version().to_owned(),
            emulation_version: self.catalog.minor_version().to_owned(),
            paths: ["/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version"],
        }
    }

    fn write_status(&self, text: &mut String) {
        let Statusz { go_version, binary_version, emulation_version, paths, .. } = self.statusz();
        let started = self.started.to_zoned(TimeZone::UTC);
        let up = self.uptime();
        let lines = [
            ("Started", started.strftime("%a %b %e %H:%M:%S UTC %Y").to_string()),
            ("Up", format!("{} hr {:02} min {:02} sec", up / 3600, up / 60 % 60, up % 60)),
            ("Go version", go_version.to_owned()),
            ("Binary version", binary_version),
            ("Emulation version", emulation_version),
            ("Paths", paths.join(" ")),
        ];
        text.push('\n');
        for (name, value) in lines {
            let _ = writeln!(text, "{name}: {value}");
        }
    }
}
