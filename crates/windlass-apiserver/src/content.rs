//! Conditional requests and requests for a range of a document, as Go's `http.ServeContent` answers them.

use http::header::{
    ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_MATCH,
    IF_NONE_MATCH, IF_RANGE, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

use crate::body::Body;

/// Answers a request with a document in memory. The entity tag is a header of the document. A request for several ranges gets the
/// whole document.
pub(crate) fn serve(method: &Method, request: &HeaderMap, mut document: Response<Body>) -> Response<Body> {
    let tag = text(document.headers(), &ETAG).unwrap_or_default().to_owned();
    if text(request, &IF_MATCH).is_some_and(|tags| !has_tag(tags, &tag, false)) {
        return without_body(document, StatusCode::PRECONDITION_FAILED);
    }
    if text(request, &IF_NONE_MATCH).is_some_and(|tags| has_tag(tags, &tag, true)) {
        if method != Method::GET && method != Method::HEAD {
            return without_body(document, StatusCode::PRECONDITION_FAILED);
        }
        for header in [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING] {
            document.headers_mut().remove(header);
        }
        return without_body(document, StatusCode::NOT_MODIFIED);
    }
    document.headers_mut().insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    // The compressed and the plain document have the same tag: parts of both do not fit together.
    if document.headers().contains_key(CONTENT_ENCODING) {
        return document;
    }
    let is_current = text(request, &IF_RANGE).is_none_or(|wanted| wanted == tag && !tag.is_empty());
    let (Some(range), Some(length)) =
        (text(request, &RANGE).filter(|_| is_current), document.body().length_in_memory())
    else {
        return document;
    };
    match parse(range, length) {
        Ok(Some((start, end))) => part(document, start, end, length),
        Ok(None) => document,
        Err(refusal) => refused(&refusal, length),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().filter(|text| !text.is_empty())
}

/// Returns whether a list of tags has `*` or `tag`. With `weak`, the weak form of a tag counts, too.
fn has_tag(tags: &str, tag: &str, weak: bool) -> bool {
    tags.split(',').map(str::trim).any(|found| {
        let strong = if weak { found.strip_prefix("W/").unwrap_or(found) } else { found };
        found == "*" || !tag.is_empty() && strong == tag
    })
}

fn without_body(document: Response<Body>, code: StatusCode) -> Response<Body> {
    let mut response = document.map(|_| Body::empty());
    *response.status_mut() = code;
    response
}

/// Why a range is refused.
enum Refusal {
    Malformed,
    /// The document ends before the range.
    Beyond,
}

/// Parses a header `Range`. Returns the positions of the first byte and behind the last byte; `None` for the whole document.
fn parse(range: &str, length: usize) -> Result<Option<(usize, usize)>, Refusal> {
    let ranges = range.strip_prefix("bytes=").ok_or(Refusal::Malformed)?;
    let parts: Vec<&str> = ranges.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    let [part] = parts[..] else { return Ok(None) };
    let (first, last) = part.split_once('-').ok_or(Refusal::Malformed)?;
    let number = |text: &str| text.trim().parse::<usize>().map_err(|_| Refusal::Malformed);
    if first.trim().is_empty() {
        let count = number(last)?.min(length);
        return if count == 0 { Err(Refusal::Beyond) } else { Ok(Some((length - count, length))) };
    }
    let start = number(first)?;
    let end = if last.trim().is_empty() { length } else { number(last)?.saturating_add(1) };
    match start {
        start if start >= length => Err(Refusal::Beyond),
        start if start >= end => Err(Refusal::Malformed),
        start => Ok(Some((start, end.min(length)))),
    }
}

fn part(document: Response<Body>, start: usize, end: usize, length: usize) -> Response<Body> {
    let mut response = document.map(|body| body.part(start, end));
    *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    let range = format!("bytes {start}-{}/{length}", end.saturating_sub(1));
    response.headers_mut().extend(HeaderValue::try_from(range).map(|range| (CONTENT_RANGE, range)));
    response
}

fn refused(refusal: &Refusal, length: usize) -> Response<Body> {
    let (text, range) = match refusal {
        Refusal::Malformed => ("invalid range\n", None),
        Refusal::Beyond => ("invalid range: failed to overlap\n", Some(format!("bytes */{length}"))),
    };
    let mut response = Response::new(Body::full(text));
    *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.extend(
        range.and_then(|range| HeaderValue::try_from(range).ok()).map(|range| (CONTENT_RANGE, range)),
    );
    response
}
