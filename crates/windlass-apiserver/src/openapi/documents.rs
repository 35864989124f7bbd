//! The OpenAPI documents in memory: each version of a document is made once for all clients that wait.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use super::hashes::Hashes;
use crate::apart::Apart;
use crate::resource::ServedResources;
use crate::wire::{self, ApiError};

/// The number of cached documents: documents are large, and few are requested again.
const KEPT: usize = 3;
/// The limit of the cached documents together, in bytes: the document of thousands of kinds has tens of megabytes.
const KEPT_BYTES: usize = 16 << 20;

/// The bytes of a document, in pieces.
pub(super) type Document = Arc<[Bytes]>;

/// The last requested documents, the documents that are being sent, and the documents that are being made: clients share all of them.
#[derive(Clone, Default)]
pub(crate) struct Documents(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    recent: VecDeque<(Key, Document)>,
    sent: Vec<(Key, Weak<[Bytes]>)>,
    begun: Vec<(Key, Weak<Slot>)>,
    hashes: Option<(Weak<ServedResources>, Arc<Hashes>)>,
}

/// The place of a document that is being made. The maker holds the lock.
type Slot = tokio::sync::Mutex<Option<Document>>;

/// A version of a document, in a coding.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    hash: String,
    is_compressed: bool,
}

/// The time that a new document stays in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// The document is cached for later clients.
    Kept,
    /// The document is shared only while a client needs the document.
    Passing,
}

impl Documents {
    /// Returns the document with this hash. `write` makes the document on a separate thread, unless the document is known or
    /// another client waits for the document already.
    ///
    /// # Errors
    /// The runtime stops, or `write` panics.
    pub(super) async fn get(
        &self,
        apart: &Apart,
        hash: &str,
        write: impl FnOnce() -> Document + Send + 'static,
    ) -> Result<Document, ApiError> {
        self.plain(apart, hash, Use::Kept, write).await
    }

    /// Returns the document with this hash, compressed if the document is large: whether the document is compressed, and the bytes.
    ///
    /// # Errors
    /// The errors of [`Documents::get`].
    pub(super) async fn get_compressed(
        &self,
        apart: &Apart,
        hash: &str,
        write: impl FnOnce() -> Document + Send + 'static,
    ) -> Result<(bool, Document), ApiError> {
        let key = Key { hash: hash.to_owned(), is_compressed: true };
        let place = match self.find(&key) {
            Ok(known) => return Ok((true, known)),
            Err(slot) => slot.lock_owned().await,
        };
        if let Some(made) = &*place {
            return Ok((true, Arc::clone(made)));
        }
        let plain = self.plain(apart, hash, Use::Passing, write).await?;
        if size(&plain) < wire::GZIP_FROM {
            self.0.lock().keep(&key_of(hash), &plain);
            return Ok((false, plain));
        }
        let compress = move || wire::gzip_pieces(plain.iter().cloned()).collect();
        Ok((true, self.make(apart, key, place, Use::Kept, compress).await?))
    }

    async fn plain(
        &self,
        apart: &Apart,
        hash: &str,
        becomes: Use,
        write: impl FnOnce() -> Document + Send + 'static,
    ) -> Result<Document, ApiError> {
        let key = key_of(hash);
        let place = match self.find(&key) {
            Ok(known) => return Ok(known),
            Err(slot) => slot.lock_owned().await,
        };
        if let Some(made) = &*place {
            return Ok(Arc::clone(made));
        }
        self.make(apart, key, place, becomes, write).await
    }

    /// Returns a known document, or else the place of a document that is not made yet.
    fn find(&self, key: &Key) -> Result<Document, Arc<Slot>> {
        let mut kept = self.0.lock();
        kept.find(key).map_or_else(|| Err(kept.slot(key)), Ok)
    }

    /// Makes a document. The maker goes on if the client leaves, and keeps the place until the end: the next client does not
    /// make the document again.
    async fn make(
        &self,
        apart: &Apart,
        key: Key,
        mut place: OwnedMutexGuard<Option<Document>>,
        becomes: Use,
        write: impl FnOnce() -> Document + Send + 'static,
    ) -> Result<Document, ApiError> {
        let documents = self.clone();
        let work = move || {
            let document = write();
            documents.0.lock().insert(&key, &document, becomes);
            *place = Some(Arc::clone(&document));
            document
        };
        apart.work(work).await.map_err(|_stopped| ApiError::internal("the document could not be made"))
    }

    /// Returns the hashes of the documents that describe the `served` resources.
    pub(super) fn hashes(&self, served: &Arc<ServedResources>, make: impl FnOnce() -> Hashes) -> Arc<Hashes> {
        if let Some((of, hashes)) = &self.0.lock().hashes
            && std::ptr::eq(of.as_ptr(), Arc::as_ptr(served))
        {
            return Arc::clone(hashes);
        }
        let hashes = Arc::new(make());
        self.0.lock().hashes = Some((Arc::downgrade(served), Arc::clone(&hashes)));
        hashes
    }
}

impl Kept {
    fn find(&self, key: &Key) -> Option<Document> {
        let (_, document) = self.sent.iter().find(|(known, _)| known == key)?;
        document.upgrade()
    }

    fn slot(&mut self, key: &Key) -> Arc<Slot> {
        let begun = self.begun.iter().find(|(known, _)| known == key).and_then(|(_, slot)| slot.upgrade());
        begun.unwrap_or_else(|| {
            let slot = Arc::new(Slot::default());
            self.begun.retain(|(_, slot)| slot.strong_count() > 0);
            self.begun.push((key.clone(), Arc::downgrade(&slot)));
            slot
        })
    }

    fn insert(&mut self, key: &Key, document: &Document, becomes: Use) {
        if becomes == Use::Kept {
            self.keep(key, document);
        }
        self.sent.retain(|(known, sent)| known != key && sent.strong_count() > 0);
        self.sent.push((key.clone(), Arc::downgrade(document)));
    }

    fn keep(&mut self, key: &Key, document: &Document) {
        self.recent.retain(|(known, _)| known != key);
        self.recent.push_back((key.clone(), Arc::clone(document)));
        while self.recent.len() > KEPT || self.size() > KEPT_BYTES {
            self.recent.pop_front();
        }
    }

    fn size(&self) -> usize {
        self.recent.iter().map(|(_, document)| size(document)).sum()
    }
}

/// Returns the key of a document without compression.
fn key_of(hash: &str) -> Key {
    Key { hash: hash.to_owned(), is_compressed: false }
}

fn size(document: &Document) -> usize {
    document.iter().map(Bytes::len).sum()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use futures::FutureExt;
    use futures::future::join_all;
    use windlass_patience::stretched;

    use super::*;

    fn document(size: usize) -> Document {
        [Bytes::from(vec![b' '; size])].into()
    }

    /// Counts the documents that are made.
    #[derive(Clone, Default)]
    struct Writer(Arc<AtomicUsize>);

    impl Writer {
        fn write(&self, size: usize) -> impl FnOnce() -> Document + Send + 'static {
            let made = Arc::clone(&self.0);
            move || {
                made.fetch_add(1, Ordering::Relaxed);
                document(size)
            }
        }

        fn made(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[tokio::test]
    async fn clients_share_a_large_document_that_is_being_sent() {
        let (documents, apart, writer) = (Documents::default(), Apart::new(), Writer::default());
        let first = documents.get(&apart, "a", writer.write(KEPT_BYTES + 1)).await.unwrap();
        let second = documents.get(&apart, "a", writer.write(1)).await.unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        drop((first, second));
        let third = documents.get(&apart, "a", writer.write(1)).await.unwrap();
        assert_eq!(size(&third), 1, "the document was dropped");
        assert_eq!(writer.made(), 2);
    }

    #[tokio::test]
    async fn the_last_documents_are_kept() {
        let (documents, apart, writer) = (Documents::default(), Apart::new(), Writer::default());
        for hash in ["a", "b", "c", "d"] {
            documents.get(&apart, hash, writer.write(1)).await.unwrap();
        }
        documents.get(&apart, "d", writer.write(1)).await.unwrap();
        assert_eq!(writer.made(), 4);
        assert_eq!(documents.get(&apart, "a", writer.write(2)).await.unwrap()[0].len(), 2);
    }

    #[tokio::test]
    async fn a_document_is_made_once_for_all_clients_that_wait() {
        let (documents, apart, writer) = (Documents::default(), Apart::new(), Writer::default());
        let large = KEPT_BYTES + 1;
        let plain = join_all((0..50).map(|_| documents.get(&apart, "a", writer.write(large))));
        let compressed =
            join_all((0..50).map(|_| documents.get_compressed(&apart, "a", writer.write(large))));
        let (plain, compressed) = futures::join!(plain, compressed);
        assert_eq!(writer.made(), 1);
        let plain: Vec<Document> = plain.into_iter().map(Result::unwrap).collect();
        assert!(plain.iter().all(|document| Arc::ptr_eq(document, &plain[0])));
        let compressed: Vec<(bool, Document)> = compressed.into_iter().map(Result::unwrap).collect();
        assert!(compressed.iter().all(|(is, document)| *is && Arc::ptr_eq(document, &compressed[0].1)));
        assert!(size(&compressed[0].1) < large / 100);
    }

    #[tokio::test]
    async fn a_small_document_is_not_compressed() {
        let (documents, apart, writer) = (Documents::default(), Apart::new(), Writer::default());
        for _ in 0..2 {
            let (is_compressed, small) =
                documents.get_compressed(&apart, "a", writer.write(10)).await.unwrap();
            assert_eq!((is_compressed, size(&small)), (false, 10));
        }
        documents.get(&apart, "a", writer.write(10)).await.unwrap();
        assert_eq!(writer.made(), 1);
    }

    #[tokio::test]
    async fn a_document_for_a_client_that_leaves_is_for_the_next_client() {
        let (documents, apart, writer) = (Documents::default(), Apart::new(), Writer::default());
        let (release, released) = mpsc::channel::<()>();
        let slow = writer.write(KEPT_BYTES + 1);
        let mut first = Box::pin(documents.get(&apart, "a", move || {
            let _ = released.recv_timeout(stretched(std::time::Duration::from_secs(20)));
            slow()
        }));
        assert!(futures::poll!(&mut first).is_pending());
        let mut second = Box::pin(documents.get(&apart, "a", writer.write(1)));
        assert!(futures::poll!(&mut second).is_pending());
        drop(first);
        assert!(futures::poll!(&mut second).is_pending(), "the document is still being made");
        release.send(()).unwrap();
        assert_eq!(size(&second.await.unwrap()), KEPT_BYTES + 1);
        assert_eq!(writer.made(), 1);
    }

    #[tokio::test]
    async fn a_panic_fails_one_request() {
        let (documents, apart) = (Documents::default(), Apart::new());
        assert!(documents.get(&apart, "a", || panic!("a bug")).await.is_err());
        assert_eq!(size(&documents.get(&apart, "a", || document(1)).await.unwrap()), 1);
    }

    #[test]
    fn a_document_needs_no_runtime() {
        let (documents, apart) = (Documents::default(), Apart::new());
        let made = documents.get(&apart, "a", || document(1)).now_or_never().unwrap();
        assert_eq!(size(&made.unwrap()), 1);
    }
}
