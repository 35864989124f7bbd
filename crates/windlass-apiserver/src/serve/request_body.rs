//! The body of a request, unread until the request has been authorised.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt;

use crate::body::{UnreadBody, unread_nothing};
use crate::wire::ApiError;

/// The largest request body: 3 MiB, as in the real server.
pub(crate) const BODY_LIMIT: usize = 3 * 1024 * 1024;
/// The memory limit for the bodies of all requests that are being received or worked on.
const BODIES_LIMIT: usize = 64 * 1024 * 1024;
/// A body of up to this size is received although others have reached the limit: the seats of the priority levels limit the number.
const ALWAYS_TAKEN: usize = 16 * 1024;

/// The body of a request. Dropping an unread body refuses the rest of the body.
pub(crate) struct RequestBody(Option<UnreadBody>);

impl RequestBody {
    pub(super) fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let body = (!body.is_end_stream()).then(|| body.map_err(Into::into).boxed_unsync());
        Self(body)
    }

    /// Returns the arriving body, without a limit.
    pub(crate) fn stream(self) -> UnreadBody {
        self.0.unwrap_or_else(unread_nothing)
    }

    /// Receives the whole body. The reservation counts the body until the reservation is dropped.
    ///
    /// # Errors
    /// 413 if the body is longer than [`BODY_LIMIT`], 429 if the bodies in memory are too large together, 500 if the client
    /// breaks off.
    pub(crate) async fn read(self, memory: &Arc<BodyMemory>) -> Result<(Bytes, Reservation), ApiError> {
        let mut reserved = Reservation { memory: Arc::clone(memory), bytes: 0 };
        let Some(mut body) = self.0 else { return Ok((Bytes::new(), reserved)) };
        if body.size_hint().lower() > BODY_LIMIT as u64 {
            return Err(ApiError::body_too_large(BODY_LIMIT));
        }
        let mut received = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame
                .map_err(|error| ApiError::unexplained(format!("cannot read the request body: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            if received.len() + data.len() > BODY_LIMIT {
                return Err(ApiError::body_too_large(BODY_LIMIT));
            }
            reserved.grow(data.len())?;
            if received.is_empty() && body.is_end_stream() {
                return Ok((data, reserved));
            }
            // Copied, because a frame may be a small slice of a large buffer.
            received.extend_from_slice(&data);
        }
        Ok((received.freeze(), reserved))
    }
}

/// Counts the bytes of the bodies of all requests that are being received or worked on: neither slow clients nor many clients take
/// all memory.
#[derive(Debug, Default)]
pub(crate) struct BodyMemory(AtomicUsize);

/// A share of [`BodyMemory`]. Dropping the reservation returns the share.
#[derive(Debug)]
pub(crate) struct Reservation {
    memory: Arc<BodyMemory>,
    bytes: usize,
}

impl Reservation {
    fn grow(&mut self, bytes: usize) -> Result<(), ApiError> {
        self.bytes += bytes;
        let others = self.memory.0.fetch_add(bytes, Ordering::Relaxed);
        if others + bytes > BODIES_LIMIT && self.bytes > ALWAYS_TAKEN {
            return Err(ApiError::too_many_requests("too many requests, please try again later.", 1));
        }
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use http_body_util::{Full, StreamBody};

    use super::*;

    fn chunked(chunks: &[usize]) -> RequestBody {
        let chunks: Vec<usize> = chunks.to_vec();
        let frames = futures::stream::iter(chunks)
            .map(|size| Ok::<_, std::io::Error>(http_body::Frame::data(Bytes::from(vec![b' '; size]))));
        RequestBody::new(StreamBody::new(frames))
    }

    #[tokio::test]
    async fn a_body_up_to_the_limit_is_read() {
        let memory = Arc::new(BodyMemory::default());
        for chunks in [&[BODY_LIMIT][..], &[1, BODY_LIMIT - 1], &[0, 1, 2, 3], &[]] {
            let (read, _reserved) = chunked(chunks).read(&memory).await.unwrap();
            assert_eq!(read.len(), chunks.iter().sum::<usize>());
        }
        for chunks in [&[BODY_LIMIT + 1][..], &[BODY_LIMIT, 1]] {
            assert_eq!(chunked(chunks).read(&memory).await.unwrap_err().code(), 413);
        }
        let declared = RequestBody::new(Full::new(Bytes::from(vec![b' '; BODY_LIMIT + 1])));
        assert_eq!(declared.read(&memory).await.unwrap_err().code(), 413);
        assert_eq!(memory.0.load(Ordering::Relaxed), 0, "every share was given back");
    }

    #[tokio::test]
    async fn bodies_in_memory_share_a_limit() {
        let memory = Arc::new(BodyMemory::default());
        let mut taken = Reservation { memory: Arc::clone(&memory), bytes: 0 };
        taken.grow(BODIES_LIMIT - 2).unwrap();
        let (received, reserved) = chunked(&[1, 1]).read(&memory).await.unwrap();
        assert_eq!(received.len(), 2);
        let large = ALWAYS_TAKEN + 1;
        assert_eq!(chunked(&[large]).read(&memory).await.unwrap_err().code(), 429);
        assert_eq!(chunked(&[ALWAYS_TAKEN]).read(&memory).await.unwrap().0.len(), ALWAYS_TAKEN);
        drop(reserved);
        drop(taken);
        assert_eq!(chunked(&[large]).read(&memory).await.unwrap().0.len(), large);
    }
}
