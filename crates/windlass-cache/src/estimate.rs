//! The memory that a cache of a kind will take.

use bytes::Bytes;

use crate::{
    MemoryUse, ObjectEncoding, ObjectRef, ReflectorId, ScanError, ScanOptions, Scanner, Store, StoreOptions,
    StoreWriter,
    frame::{ListFramer, ListMeta},
};

/// Estimates the memory of caches of one kind from the pages of a list.
///
/// The first objects are stored as caches store objects; further objects are only counted. The estimate therefore takes little memory itself.
#[derive(Debug)]
pub struct MemoryEstimate {
    raw: SampleCache,
    compressed: SampleCache,
    metadata: SampleCache,
    objects: usize,
    json_bytes: usize,
    sampled: usize,
}

/// The number of objects that are stored.
const SAMPLE: usize = 10_000;
/// The part of the memory of an empty cache that does not grow with the objects.
const FIXED: usize = 64 << 10;

impl MemoryEstimate {
    /// Creates an estimate for the kind. The items of a typed list do not have `apiVersion` and `kind`.
    pub fn new(api_version: &str, kind: &str) -> Self {
        let cache = |encoding, metadata_only| {
            let type_meta = Some((api_version.to_owned(), kind.to_owned()));
            let options = ScanOptions { metadata_only, type_meta, one_kind: true, ..ScanOptions::default() };
            SampleCache::new(encoding, &options)
        };
        Self {
            raw: cache(ObjectEncoding::Raw, false),
            compressed: cache(ObjectEncoding::Compressed, false),
            metadata: cache(ObjectEncoding::Raw, true),
            objects: 0,
            json_bytes: 0,
            sampled: 0,
        }
    }

    /// Adds a page of a list, as JSON. Returns the metadata of the page, which has the token of the next page.
    ///
    /// # Errors
    /// The page is not a list. An item that a cache could not read is left out.
    pub fn add_page(&mut self, page: Bytes) -> Result<ListMeta, ScanError> {
        let mut framer = ListFramer::new(page.len());
        let mut scanner = Scanner::new(&ScanOptions::default());
        framer.push(page);
        while let Some(item) = framer.next(&mut scanner)? {
            let Ok(item) = item else { continue };
            self.add(item.source());
        }
        framer.finish()
    }

    fn add(&mut self, json: &[u8]) {
        self.objects += 1;
        self.json_bytes += json.len();
        if self.sampled < SAMPLE {
            let caches = [&mut self.raw, &mut self.compressed, &mut self.metadata];
            let stored = caches.map(|cache| cache.add(json).is_ok());
            self.sampled += usize::from(stored == [true; 3]);
        }
    }

    /// Returns the number of objects.
    pub fn objects(&self) -> usize {
        self.objects
    }

    /// Returns the bytes of the objects as JSON.
    pub fn json_bytes(&self) -> usize {
        self.json_bytes
    }

    /// Returns the bytes of memory of a cache with [`ObjectEncoding::Raw`].
    pub fn raw(&self) -> usize {
        self.scaled(&self.raw)
    }

    /// Returns the bytes of memory of a cache with [`ObjectEncoding::Compressed`].
    pub fn compressed(&self) -> usize {
        self.scaled(&self.compressed)
    }

    /// Returns the bytes of memory of a cache with the metadata only.
    pub fn metadata_only(&self) -> usize {
        self.scaled(&self.metadata)
    }

    /// Scales the memory of the stored objects to all objects.
    fn scaled(&self, cache: &SampleCache) -> usize {
        let memory = cache.memory();
        let each = (memory.objects + memory.index + memory.shared) as f64 / self.sampled.max(1) as f64;
        FIXED + memory.dictionaries + (each * self.objects as f64) as usize
    }
}

/// A cache of the first objects.
#[derive(Debug)]
struct SampleCache {
    scanner: Scanner,
    store: Store,
    writer: StoreWriter,
}

impl SampleCache {
    fn new(encoding: ObjectEncoding, options: &ScanOptions) -> Self {
        let (store, writer) = Store::new(StoreOptions { encoding, ..StoreOptions::default() });
        Self { scanner: Scanner::new(options), store, writer }
    }

    fn add(&mut self, json: &[u8]) -> Result<(), ScanError> {
        let object = self.scanner.object(json)?;
        let seen = ObjectRef::of(ReflectorId::default(), &object);
        self.writer.write(|transaction| transaction.upsert(seen, false, |_| Ok(object.clone())))
    }

    fn memory(&self) -> MemoryUse {
        MemoryUse { shared: self.scanner.shared_memory(), ..self.store.memory() }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::{MemoryEstimate, SAMPLE};

    fn page(first: usize, count: usize) -> String {
        let mut page = r#"{"metadata":{"continue":"next","resourceVersion":"7"},"items":["#.to_owned();
        for number in first..first + count {
            let comma = if number > first { "," } else { "" };
            let _ = write!(
                page,
                r#"{comma}{{"metadata":{{"name":"object-{number}","namespace":"default","uid":"uid-{number}","resourceVersion":"{number}","managedFields":[{{"manager":"{number}"}}]}},"spec":{{"text":"{}"}}}}"#,
                "x".repeat(500)
            );
        }
        page + "]}"
    }

    #[test]
    #[cfg_attr(miri, ignore = "zstd is C")]
    fn a_kind_is_estimated_from_its_first_objects() {
        let mut estimate = MemoryEstimate::new("example.com/v1", "Thing");
        for number in 0..12 {
            let meta = estimate.add_page(page(number * 1000, 1000).into()).expect("a list");
            assert_eq!(meta.continue_token, "next");
        }
        assert_eq!((estimate.objects(), estimate.sampled), (12_000, SAMPLE));
        assert!(estimate.json_bytes() > 12_000 * 600);
        assert!(estimate.raw() < estimate.json_bytes() / 2, "the objects share most of their text");
        assert!((12_000 * 100..12_000 * 500).contains(&estimate.metadata_only()));
        estimate.add_page("[]".into()).expect_err("not a list");
    }
}
