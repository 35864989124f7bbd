//! Downloads of blobs.

use bytes::Bytes;
use futures::stream;
use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use tokio::io::AsyncReadExt as _;

use super::State;
use super::reply::{Body, Refusal, full, respond};
use crate::{Digest, Error};

/// The size of the parts of a reply, in bytes.
const PART: usize = 1 << 18;

impl State {
    pub(super) fn get_blob(&self, digest: &str, is_head: bool) -> Result<Response<Body>, Refusal> {
        let digest: Digest = digest.parse().map_err(|_| Refusal::digest_invalid())?;
        let file = self.store.blob(&digest)?;
        let size = file
            .metadata()
            .map_err(|error| Error::storage("read", &self.store.blob_path(&digest), error))?
            .len();
        let (size, digest) = (size.to_string(), digest.to_string());
        let headers = [
            ("content-type", "application/octet-stream"),
            ("content-length", size.as_str()),
            ("docker-content-digest", digest.as_str()),
        ];
        let body = if is_head { full("") } else { stream_of(file) };
        Ok(respond(StatusCode::OK, &headers, body))
    }
}

fn stream_of(file: std::fs::File) -> Body {
    let parts = stream::try_unfold(tokio::fs::File::from_std(file), |mut file| async move {
        let mut part = vec![0; PART];
        let read = file.read(&mut part).await?;
        part.truncate(read);
        let next = (read > 0).then(|| (Frame::data(Bytes::from(part)), file));
        Ok::<_, std::io::Error>(next)
    });
    StreamBody::new(parts).boxed_unsync()
}
