//! Uploads of blobs.

use std::io::Read as _;

use bytes::Bytes;
use http::header::CONTENT_RANGE;
use http::{Method, StatusCode, Uri};

use super::transport::{Call, Content};
use super::{Access, Progress, Pushed, Registry, Step};
use crate::{Descriptor, Error, Reference, Result, Store};

/// The size of the parts of an upload, in bytes. Smaller blobs are sent by one request.
const PART: u64 = 16 << 20;

/// The media type of blobs and parts.
const BINARY: &str = "application/octet-stream";

/// How often an upload is begun again.
const RETRIES: u32 = 3;

impl Registry {
    /// Uploads a blob, unless the registry has the blob.
    pub(super) async fn upload(
        &self,
        store: &Store,
        target: &Reference,
        blob: &Descriptor,
        pushed: &mut Pushed,
        progress: &dyn Progress,
    ) -> Result<()> {
        let uri = self.uri(target, &format!("blobs/{}", blob.digest)).await?;
        let reply = self.send(target, Access::Push, Call::new(Method::HEAD, uri)).await?;
        if reply.status().is_success() {
            pushed.present += 1;
            progress.report(blob, Step::Present);
            return Ok(());
        }
        if reply.status() != StatusCode::NOT_FOUND {
            return Err(reply.into_error().await);
        }
        let mut left = RETRIES;
        let mut way = Way { in_parts: blob.size > PART, accepts_parts: false };
        loop {
            match self.upload_once(store, target, blob, &mut way, progress).await {
                Ok(step) => {
                    *(if step == Step::Mounted { &mut pushed.mounted } else { &mut pushed.transferred }) += 1;
                    progress.report(blob, step);
                    return Ok(());
                }
                // A part that was sent twice, a session that a restart of the registry has lost, a registry without uploads in parts, or a
                // request that is too large.
                Err(Error::NotFound(_) | Error::Refused(_)) if left > 0 => {
                    left -= 1;
                    way.change(blob);
                }
                // A registry that refuses a request may end the connection before the client has read the refusal.
                Err(Error::Unavailable(_)) if left > 0 => {
                    if left < RETRIES {
                        way.change(blob);
                    }
                    left -= 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Uploads a blob by one request, or in parts.
    async fn upload_once(
        &self,
        store: &Store,
        target: &Reference,
        blob: &Descriptor,
        way: &mut Way,
        progress: &dyn Progress,
    ) -> Result<Step> {
        let mount = mount_source(store, target, blob)?;
        let query = mount.map_or_else(String::new, |from| format!("?mount={}&from={from}", blob.digest));
        let uri = self.uri(target, &format!("blobs/uploads/{query}")).await?;
        let reply = self.send(target, Access::Push, Call::new(Method::POST, uri)).await?.successful().await?;
        if reply.status() == StatusCode::CREATED {
            return Ok(Step::Mounted);
        }
        let mut session = reply.location()?;
        let mut content = Content::Bytes(Bytes::new());
        if way.in_parts {
            session = self.upload_parts(store, target, blob, session, way, progress).await?;
        } else {
            let found = store.blob(&blob.digest)?.metadata().map(|metadata| metadata.len());
            if !found.is_ok_and(|size| size == blob.size) {
                return Err(cut_off(blob));
            }
            content = Content::File(store.blob_path(&blob.digest), blob.size);
        }
        let call = Call::new(Method::PUT, with_digest(&session, blob)?).content(BINARY, content);
        self.send(target, Access::Push, call).await?.successful().await?;
        Ok(Step::Done)
    }

    /// Uploads the parts of a blob. Returns the address of the last request.
    async fn upload_parts(
        &self,
        store: &Store,
        target: &Reference,
        blob: &Descriptor,
        mut session: Uri,
        way: &mut Way,
        progress: &dyn Progress,
    ) -> Result<Uri> {
        let mut file = store.blob(&blob.digest)?;
        let mut sent = 0;
        while sent < blob.size {
            let size = PART.min(blob.size - sent);
            let mut part = Vec::new();
            std::io::Read::by_ref(&mut file)
                .take(size)
                .read_to_end(&mut part)
                .map_err(|error| Error::storage("read", &store.blob_path(&blob.digest), error))?;
            if part.len() as u64 != size {
                return Err(cut_off(blob));
            }
            let range = format!("{sent}-{}", sent + size - 1);
            sent += size;
            let call = Call::new(Method::PATCH, session)
                .body(BINARY, Bytes::from(part))
                .header(CONTENT_RANGE, &range);
            session = self.send(target, Access::Push, call).await?.successful().await?.location()?;
            way.accepts_parts = true;
            progress.report(blob, Step::Moved(sent));
        }
        Ok(session)
    }
}

/// The way to upload a large blob: in parts or by one request.
struct Way {
    in_parts: bool,
    /// True if the registry has accepted a part of the blob.
    accepts_parts: bool,
}

impl Way {
    /// Chooses the way after a failure: in parts if the registry accepts parts, else the other way.
    fn change(&mut self, blob: &Descriptor) {
        self.in_parts = blob.size > PART && (self.accepts_parts || !self.in_parts);
    }
}

fn cut_off(blob: &Descriptor) -> Error {
    Error::Invalid(format!("the blob {} of the store is cut off", blob.digest))
}

/// Adds the digest to the address of an upload, whose query may not be empty.
fn with_digest(session: &Uri, blob: &Descriptor) -> Result<Uri> {
    let separator = if session.query().is_some() { '&' } else { '?' };
    format!("{session}{separator}digest={}", blob.digest).parse().map_err(Error::invalid)
}

/// Returns another repository of the same registry that has the blob, as far as the store knows.
fn mount_source(store: &Store, target: &Reference, blob: &Descriptor) -> Result<Option<String>> {
    let others = store.list()?.into_iter().filter(|entry| {
        entry.reference.registry() == target.registry() && entry.reference.repository() != target.repository()
    });
    let found = others.into_iter().find(|entry| store.reaches(&entry.descriptor, &blob.digest));
    Ok(found.map(|entry| entry.reference.repository().to_owned()))
}
