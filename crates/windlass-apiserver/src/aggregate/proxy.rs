//! Requests that are passed on to an extension server, with the name of the user.

use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use hyper::body::Incoming;

use super::client::{Client, name_user};
use super::remote::Remote;
use crate::auth::Identity;
use crate::body::{Body, UnreadBody};
use crate::registry::{forwarded, upgraded};
use crate::webhook::explain;

/// The reply of kube-apiserver for a server that is not available.
pub(super) fn unavailable(why: &str) -> Response<Body> {
    text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n"))
}

fn text(code: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::full(text));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Makes a request to the service of `remote` for a path with a query.
pub(super) fn request(
    remote: &Remote,
    method: &Method,
    path_and_query: &str,
    body: UnreadBody,
) -> Result<Request<UnreadBody>, String> {
    let authority = format!("{}.{}.svc:{}", remote.service, remote.namespace, remote.port);
    let uri =
        format!("https://{authority}{path_and_query}").parse::<Uri>().map_err(|error| error.to_string())?;
    let mut request = Request::new(body);
    *request.method_mut() = method.clone();
    *request.uri_mut() = uri;
    Ok(request)
}

/// Passes a request on, and returns the reply. The bodies are not kept: each part is sent when the part arrives.
pub(super) async fn pass_on<B>(
    client: Client,
    remote: &Remote,
    identity: &Identity,
    received: &Request<B>,
    body: UnreadBody,
) -> Response<Body> {
    let path = received.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let upgrade = forwarded::upgrade(received.headers());
    let mut sent = match request(remote, received.method(), path, body) {
        Ok(sent) => sent,
        Err(why) => return unavailable(&why),
    };
    *sent.headers_mut() = forwarded::of_request(received.headers(), received.uri(), upgrade.as_ref());
    // The client names the service, as Go's client does.
    sent.headers_mut().remove(header::HOST);
    name_user(sent.headers_mut(), identity);
    match client.request(sent).await {
        Ok(reply) if upgrade.is_some() && forwarded::is_no_upgrade(reply.status()) => {
            unavailable(&forwarded::invalid_upgrade(reply.status()))
        }
        Ok(reply) => returned(reply),
        Err(error) => unavailable(&explain(&error)),
    }
}

fn returned(mut reply: Response<Incoming>) -> Response<Body> {
    if reply.status() == StatusCode::SWITCHING_PROTOCOLS {
        return upgraded(reply);
    }
    if reply.status().is_redirection() && reply.headers().contains_key(header::LOCATION) {
        // The redirect may lead the credentials of a client to any server.
        let why = "the backend attempted to redirect this request, which is not permitted";
        return text(StatusCode::BAD_GATEWAY, why.to_owned());
    }
    forwarded::clean(reply.headers_mut());
    reply.map(Body::passed_on)
}
