//! Uploads of blobs.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::header::CONTENT_RANGE;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::timeout;

use super::State;
use super::manifests::parameter;
use super::reply::{Body, Refusal, full, respond};
use super::route::Repository;
use crate::{BlobWriter, Digest, Error};

/// The most uploads at the same time.
const MOST: usize = 100;

/// How long an upload may pause.
const IDLE: Duration = Duration::from_secs(600);

/// The longest wait for a part of a request.
const PART_TIMEOUT: Duration = Duration::from_secs(60);

/// The largest blob, in bytes.
const LARGEST: u64 = 16 << 30;

/// The uploads that are not finished, by ID.
#[derive(Debug, Default)]
pub(super) struct Uploads(Mutex<HashMap<String, Upload>>);

#[derive(Debug)]
struct Upload {
    writer: BlobWriter,
    used: Instant,
}

impl Uploads {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Upload>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, id: &str, writer: BlobWriter) {
        self.lock().insert(id.to_owned(), Upload { writer, used: Instant::now() });
    }

    /// Takes an upload, so that no other request writes to the same upload.
    fn take(&self, id: &str) -> Result<BlobWriter, Refusal> {
        self.lock().remove(id).map(|upload| upload.writer).ok_or_else(Refusal::upload_unknown)
    }
}

impl State {
    pub(super) async fn begin_upload(
        &self,
        repository: &Repository,
        query: &str,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let mount = parameter(query, "mount").and_then(|digest| digest.parse::<Digest>().ok());
        if let Some(digest) = mount.filter(|digest| self.store.has(digest)) {
            return Ok(created(repository, &digest));
        }
        let mut writer = self.store.writer()?;
        if let Some(digest) = parameter(query, "digest") {
            receive(&mut writer, request).await?;
            return finish(repository, writer, &digest);
        }
        let mut uploads = self.uploads.lock();
        uploads.retain(|_, upload| upload.used.elapsed() < IDLE);
        if uploads.len() >= MOST {
            return Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, "TOOMANYREQUESTS", "too many uploads"));
        }
        drop(uploads);
        let id = writer.id();
        self.uploads.put(&id, writer);
        Ok(status(repository, &id, 0, StatusCode::ACCEPTED))
    }

    pub(super) fn show_upload(&self, repository: &Repository, id: &str) -> Result<Response<Body>, Refusal> {
        let size = self.uploads.lock().get(id).ok_or_else(Refusal::upload_unknown)?.writer.size();
        Ok(status(repository, id, size, StatusCode::NO_CONTENT))
    }

    pub(super) async fn continue_upload(
        &self,
        repository: &Repository,
        id: &str,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let range = request.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
        let start =
            range.and_then(|range| range.trim_start_matches("bytes ").split('-').next()?.parse::<u64>().ok());
        let mut writer = self.uploads.take(id)?;
        if start.is_some_and(|start| start != writer.size()) {
            let size = writer.size();
            self.uploads.put(id, writer);
            return Ok(status(repository, id, size, StatusCode::RANGE_NOT_SATISFIABLE));
        }
        receive(&mut writer, request).await?;
        let size = writer.size();
        self.uploads.put(id, writer);
        Ok(status(repository, id, size, StatusCode::ACCEPTED))
    }

    pub(super) async fn finish_upload(
        &self,
        repository: &Repository,
        id: &str,
        query: &str,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let mut writer = self.uploads.take(id)?;
        receive(&mut writer, request).await?;
        finish(repository, writer, &parameter(query, "digest").unwrap_or_default())
    }

    pub(super) fn cancel_upload(&self, id: &str) -> Result<Response<Body>, Refusal> {
        self.uploads.take(id)?;
        Ok(respond(StatusCode::NO_CONTENT, &[], full("")))
    }
}

/// Writes the body of a request. A request that is cut off ends the upload.
async fn receive(writer: &mut BlobWriter, request: Request<Incoming>) -> Result<(), Refusal> {
    let invalid = |why: String| Refusal::new(StatusCode::BAD_REQUEST, "BLOB_UPLOAD_INVALID", why);
    let mut body = request.into_body();
    loop {
        let frame =
            timeout(PART_TIMEOUT, body.frame()).await.map_err(|_| invalid("no data in 60 s".to_owned()))?;
        let Some(frame) = frame else { return Ok(()) };
        let Ok(data) = frame.map_err(|error| invalid(error.to_string()))?.into_data() else { continue };
        if writer.size() + data.len() as u64 > LARGEST {
            return Err(Refusal::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "SIZE_INVALID",
                "the blob is larger than 16 GiB",
            ));
        }
        let written = writer.write_all(&data);
        written.map_err(|error| Error::Storage { doing: "cannot write a blob".to_owned(), error })?;
    }
}

fn finish(repository: &Repository, writer: BlobWriter, digest: &str) -> Result<Response<Body>, Refusal> {
    let digest: Digest = digest.parse().map_err(|_| Refusal::digest_invalid())?;
    writer.commit(Some(&digest))?;
    Ok(created(repository, &digest))
}

fn created(repository: &Repository, digest: &Digest) -> Response<Body> {
    let digest = digest.to_string();
    let location = format!("/v2/{}/blobs/{digest}", repository.name);
    respond(StatusCode::CREATED, &[("location", &location), ("docker-content-digest", &digest)], full(""))
}

fn status(repository: &Repository, id: &str, size: u64, status: StatusCode) -> Response<Body> {
    let location = format!("/v2/{}/blobs/uploads/{id}", repository.name);
    let range = format!("0-{}", size.saturating_sub(1));
    respond(status, &[("location", &location), ("range", &range), ("docker-upload-uuid", id)], full(""))
}
