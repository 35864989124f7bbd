//! Manifests, tags and lists of the registry.

use std::collections::BTreeSet;

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json as object};

use super::State;
use super::reply::{Body, Refusal, full, json, respond};
use super::route::{Repository, is_same};
use crate::store::LARGEST_DOCUMENT;
use crate::{Descriptor, Digest, Index, media_type};

/// The most tags of a reply.
const MOST_TAGS: usize = 10_000;

impl State {
    pub(super) fn catalog(&self, host: &str) -> Result<Response<Body>, Refusal> {
        let entries =
            self.store.list()?.into_iter().filter(|entry| is_same(entry.reference.registry(), host));
        let names: BTreeSet<String> = entries.map(|entry| entry.reference.repository().to_owned()).collect();
        Ok(json(StatusCode::OK, &object!({ "repositories": names })))
    }

    pub(super) fn tags(&self, repository: &Repository, query: &str) -> Result<Response<Body>, Refusal> {
        let entries = repository.entries(&self.store)?;
        if entries.is_empty() {
            return Err(Refusal::name_unknown());
        }
        let most = parameter(query, "n").and_then(|n| n.parse().ok()).unwrap_or(MOST_TAGS).min(MOST_TAGS);
        let last = parameter(query, "last").unwrap_or_default();
        let tags: BTreeSet<&str> = entries.iter().filter_map(|entry| entry.reference.tag()).collect();
        let mut rest = tags.into_iter().filter(|tag| *tag > last.as_str());
        let page: Vec<&str> = rest.by_ref().take(most).collect();
        let mut reply = json(StatusCode::OK, &object!({ "name": repository.name, "tags": page }));
        if let (Some(_), Some(last)) = (rest.next(), page.last()) {
            let link = format!("</v2/{}/tags/list?n={most}&last={last}>; rel=\"next\"", repository.name);
            reply
                .headers_mut()
                .extend(http::HeaderValue::from_str(&link).ok().map(|link| (http::header::LINK, link)));
        }
        Ok(reply)
    }

    pub(super) fn list_referrers(&self, digest: &str, query: &str) -> Result<Response<Body>, Refusal> {
        let subject: Digest = digest.parse().map_err(|_| Refusal::digest_invalid())?;
        let wanted = parameter(query, "artifactType");
        let mut referrers = self.store.referrers(&subject)?;
        for referrer in &mut referrers {
            referrer.annotations.retain(|key, _| !key.starts_with("io.containerd."));
        }
        referrers.retain(|referrer| wanted.is_none() || referrer.artifact_type == wanted);
        let mut headers = vec![("content-type", media_type::INDEX)];
        headers.extend(wanted.is_some().then_some(("oci-filters-applied", "artifactType")));
        let body = serde_json::to_vec(&Index::new(referrers)).unwrap_or_default();
        Ok(respond(StatusCode::OK, &headers, full(body)))
    }

    pub(super) fn get_manifest(
        &self,
        repository: &Repository,
        reference: &str,
    ) -> Result<Response<Body>, Refusal> {
        let digest = match reference.parse::<Digest>() {
            Ok(digest) => digest,
            Err(_) => self.tagged(repository, reference)?.digest,
        };
        if !self.store.has(&digest) {
            return Err(Refusal::manifest_unknown());
        }
        let bytes = self.store.read(&digest)?;
        let document: Value = serde_json::from_slice(&bytes).map_err(|_| Refusal::manifest_unknown())?;
        let media_type = kind(&document).ok_or_else(Refusal::manifest_unknown)?;
        let digest = digest.to_string();
        let headers = [
            ("content-type", media_type.as_str()),
            ("docker-content-digest", &digest),
            ("content-length", &bytes.len().to_string()),
        ];
        Ok(respond(StatusCode::OK, &headers, full(bytes)))
    }

    fn tagged(&self, repository: &Repository, tag: &str) -> Result<Descriptor, Refusal> {
        let entries = repository.entries(&self.store)?.into_iter();
        let mut found =
            entries.filter(|entry| entry.reference.tag() == Some(tag)).map(|entry| entry.descriptor);
        found.next_back().ok_or_else(Refusal::manifest_unknown)
    }

    pub(super) async fn put_manifest(
        &self,
        repository: &Repository,
        reference: &str,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let body = Limited::new(request.into_body(), LARGEST_DOCUMENT as usize).collect().await;
        let bytes = body.map_err(|error| Refusal::manifest_invalid(error.to_string()))?.to_bytes();
        let document: Value =
            serde_json::from_slice(&bytes).map_err(|error| Refusal::manifest_invalid(error.to_string()))?;
        let media_type =
            kind(&document).ok_or_else(|| Refusal::manifest_invalid("neither a manifest nor an index"))?;
        self.check_blobs(&document)?;
        let descriptor = Descriptor::of(&media_type, &bytes);
        let name = match reference.parse::<Digest>() {
            Ok(digest) if digest != descriptor.digest => return Err(Refusal::digest_invalid()),
            Ok(digest) => repository.digested(digest),
            Err(_) => repository.tagged(reference)?,
        };
        self.store.put(&bytes)?;
        self.store.tag(&name, &descriptor)?;
        let digest = descriptor.digest.to_string();
        let location = format!("/v2/{}/manifests/{digest}", repository.name);
        let mut headers = vec![("location", location.as_str()), ("docker-content-digest", digest.as_str())];
        headers.extend(document["subject"]["digest"].as_str().map(|subject| ("oci-subject", subject)));
        Ok(respond(StatusCode::CREATED, &headers, full("")))
    }

    /// Refuses a manifest whose blobs are missing.
    fn check_blobs(&self, document: &Value) -> Result<(), Refusal> {
        let lists = ["layers", "manifests"].into_iter().filter_map(|key| document[key].as_array()).flatten();
        let config = document.get("config");
        for descriptor in lists.chain(config) {
            let digest = descriptor["digest"].as_str().and_then(|digest| digest.parse::<Digest>().ok());
            let digest =
                digest.ok_or_else(|| Refusal::manifest_invalid("a descriptor has no digest of SHA-256"))?;
            let is_foreign = descriptor.get("urls").is_some();
            if !is_foreign && !self.store.has(&digest) {
                let message = format!("blob unknown to registry: {digest}");
                return Err(Refusal::new(StatusCode::NOT_FOUND, "MANIFEST_BLOB_UNKNOWN", message));
            }
        }
        Ok(())
    }

    pub(super) fn delete_manifest(
        &self,
        repository: &Repository,
        reference: &str,
    ) -> Result<Response<Body>, Refusal> {
        let digest = reference.parse::<Digest>().ok();
        let entries = repository.entries(&self.store)?.into_iter();
        let is_meant = |entry: &crate::Entry| match &digest {
            Some(digest) => entry.descriptor.digest == *digest,
            None => entry.reference.tag() == Some(reference),
        };
        let names: Vec<_> = entries.filter(is_meant).map(|entry| entry.reference).collect();
        if names.is_empty() {
            return Err(Refusal::manifest_unknown());
        }
        for name in &names {
            self.store.remove(name)?;
        }
        Ok(respond(StatusCode::ACCEPTED, &[], full("")))
    }
}

/// Returns the media type of a manifest or of an index.
fn kind(document: &Value) -> Option<String> {
    let guess = if document.get("manifests").is_some_and(Value::is_array) {
        media_type::INDEX
    } else if document.get("config").is_some_and(Value::is_object) {
        media_type::MANIFEST
    } else {
        return None;
    };
    let own = document["mediaType"].as_str();
    Some(
        own.filter(|own| media_type::is_index(own) || media_type::is_manifest(own))
            .unwrap_or(guess)
            .to_owned(),
    )
}

/// Returns a parameter of a query.
pub(super) fn parameter(query: &str, name: &str) -> Option<String> {
    form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}
