//! Feeds the cache of an informer without a server.

use windlass_cache::{ReflectorId, ReflectorStore, ScanError, ScanOptions, Scanner};

use super::SharedInformer;

impl SharedInformer {
    /// Fills the cache with a first list, at a resource version.
    #[doc(hidden)]
    pub fn fill<'a>(&self, objects: impl Iterator<Item = &'a [u8]> + Clone, revision: u64) {
        let mut scanner = self.scanner();
        for source in self.sources() {
            self.watch.core.feed(source, |store| {
                store.begin_list();
                for object in objects.clone() {
                    let scanned = scanner.scan(object);
                    let added = scanned.and_then(|scanned| match self.source_of(scanned.namespace()) {
                        Some(of_object) if of_object == source => store.upsert(scanned),
                        _ => Ok(()),
                    });
                    self.log_unreadable(added);
                }
                store.end_list();
                store.progress(&revision.to_string());
            });
        }
    }

    /// Shows a change of an object, at a resource version.
    #[doc(hidden)]
    pub fn update(&self, object: &[u8], exists: bool, revision: u64) {
        let mut scanner = self.scanner();
        for source in self.sources() {
            self.watch.core.feed(source, |store| {
                let changed =
                    scanner.scan(object).and_then(|scanned| match self.source_of(scanned.namespace()) {
                        Some(of_object) if of_object != source => Ok(()),
                        None => Ok(()),
                        Some(_) if exists => store.upsert(scanned),
                        Some(_) => store.delete(scanned),
                    });
                self.log_unreadable(changed);
                store.progress(&revision.to_string());
            });
        }
    }

    fn scanner(&self) -> Scanner {
        let options = self.options().scan_options(self.resource());
        Scanner::new(&ScanOptions { one_kind: false, ..options })
    }

    fn sources(&self) -> impl Iterator<Item = ReflectorId> + use<> {
        (0..self.options().namespaces.len().max(1)).map(|number| ReflectorId(number as u16))
    }

    fn log_unreadable(&self, fed: Result<(), ScanError>) {
        if let Err(error) = fed {
            tracing::error!(kind = self.resource().kind, %error, "an object cannot be read");
        }
    }
}
