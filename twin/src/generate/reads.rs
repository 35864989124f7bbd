//! Reads and watches.

use super::query::{self, Query};
use super::{Episode, WATCHES, pick};
use crate::kind::Kind;

impl Episode {
    pub(super) fn get(&mut self) {
        let known = self.object();
        let mut query = Query::default();
        match self.random.u32(..20) {
            0 => query.add("resourceVersion", "0"),
            1 => query.add("resourceVersion", format!("{{{{{}/metadata/resourceVersion}}}}", known.seen)),
            2 => query.add("resourceVersion", "abc"),
            3 => query.add("pretty", "1"),
            _ => {}
        }
        let accept = query::accept(&mut self.random, false);
        let plain = accept.is_none();
        let sub = match self.random.u32(..12) {
            0 if !known.kind.status.is_empty() => "/status",
            1 if known.kind.scale => "/scale",
            2 => "/nothing",
            _ => "",
        };
        let op = self.push(query.on(&format!("GET {}{sub}", known.path())));
        op.accept = accept;
        let id = op.id;
        if plain && sub.is_empty() {
            self.saw(&known, id);
        }
    }

    /// Returns the path of a collection, and true for a cluster-wide collection.
    pub(super) fn collection(&mut self, kind: &Kind) -> (String, bool) {
        let namespace = if self.random.u32(..5) == 0 { "" } else { self.namespace() };
        (kind.collection(namespace), namespace.is_empty() || !kind.namespaced)
    }

    pub(super) fn list(&mut self) {
        let kind = self.kind();
        let (path, cluster_wide) = self.collection(&kind);
        let mut query = Query::default();
        query::selectors(&mut self.random, &mut query, &kind, cluster_wide);
        let version = self.some_version();
        match self.random.u32(..40) {
            0..2 => query.add("resourceVersion", "0"),
            2..4 => query.add("resourceVersion", &version),
            4..6 => {
                query.add("resourceVersion", &version);
                query.add("resourceVersionMatch", "Exact");
            }
            6..8 => {
                query.add("resourceVersion", &version);
                query.add("resourceVersionMatch", "NotOlderThan");
            }
            8 => query.add("resourceVersionMatch", "Exact"),
            9 => query.add("resourceVersion", "x"),
            10 => query.add("limit", pick(&mut self.random, &["-1", "x", "0"])),
            11 => query.add("continue", pick(&mut self.random, &["bogus", "e30", ""])),
            12 => {
                query.add("resourceVersion", "0");
                query.add("resourceVersionMatch", "Exact");
            }
            13 => {
                query.add("resourceVersion", &version);
                query.add("resourceVersionMatch", "Nearly");
            }
            // The server waits three seconds for that version.
            14 if self.random.u32(..8) == 0 => query.add("resourceVersion", "999999999999999999"),
            15 => query.add("timeoutSeconds", "5"),
            18..21 if !cluster_wide => query.add("limit", pick(&mut self.random, &["1", "2"])),
            16 if !cluster_wide => {
                query.add("includeObject", pick(&mut self.random, &["None", "Object", "Metadata", "x"]));
            }
            17 => query.add("sendInitialEvents", "true"),
            _ => {}
        }
        let accept = query::accept(&mut self.random, true);
        self.push(query.on(&format!("GET {path}"))).accept = accept;
    }

    /// Returns a reference to a resource version of some object.
    pub(super) fn some_version(&mut self) -> String {
        let seen = if self.objects.is_empty() { 1 } else { pick(&mut self.random, &self.objects).seen };
        format!("{{{{{seen}/metadata/resourceVersion}}}}")
    }

    /// Lists a collection in pages. The collection must be the script's own: a page depends on the following
    /// objects.
    pub(super) fn pages(&mut self) {
        let kind = self.kind();
        if !kind.namespaced {
            return;
        }
        let path = kind.collection(self.namespace());
        let mut query = Query::default();
        let limit = *pick(&mut self.random, &["1", "1", "2", "3"]);
        query.add("limit", limit);
        let run = query.on(&format!("GET {path}"));
        let accept = query::accept(&mut self.random, true);
        for number in 0..3 {
            let last = self.ops.last().map_or(0, |last| last.id);
            let run = match number {
                0 => run.clone(),
                _ => format!("{run}&continue={{{{{last}/metadata/continue}}}}"),
            };
            self.push(run).accept = accept.clone();
            if self.random.u32(..4) == 0 {
                break;
            }
        }
    }

    pub(super) fn watch(&mut self) {
        if self.watches >= WATCHES {
            return;
        }
        self.watches += 1;
        let kind = self.kind();
        let (path, cluster_wide) = self.collection(&kind);
        let mut query = Query::default();
        query::selectors(&mut self.random, &mut query, &kind, cluster_wide);
        let version = self.some_version();
        match self.random.u32(..20) {
            0..8 => query.add("resourceVersion", &version),
            8..10 => query.add("resourceVersion", "0"),
            10..14 => {
                query.add("sendInitialEvents", "true");
                query.add("resourceVersionMatch", "NotOlderThan");
                if self.random.u32(..5) > 0 {
                    query.add("allowWatchBookmarks", "true");
                }
                if self.random.bool() {
                    query.add("resourceVersion", &version);
                }
            }
            14 => query.add("resourceVersion", "x"),
            15 => query.add("sendInitialEvents", "true"),
            16 => query.add("resourceVersionMatch", "Exact"),
            _ => {}
        }
        let accept = query::accept(&mut self.random, true).filter(|accept| !accept.contains("html"));
        self.push(query.on(&format!("WATCH {path}"))).accept = accept;
    }

    pub(super) fn drain(&mut self) {
        if self.watches > 0 {
            self.push("DRAIN");
        }
    }
}
