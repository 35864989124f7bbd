//! Requests with paths, queries and methods that no client of Kubernetes sends.

use serde_json::json;

use super::{Episode, pick, samples};

const METHODS: [&str; 12] =
    ["GET", "GET", "GET", "GET", "GET", "HEAD", "OPTIONS", "TRACE", "POST", "PUT", "PATCH", "FOO"];

impl Episode {
    /// A request with a wrong path, query or method.
    pub(super) fn hostile(&mut self) {
        let (path, is_own) = self.some_path();
        let mut path = path;
        for _ in 0..self.random.usize(..3) {
            path = self.distorted(&path);
        }
        let mut method = *pick(&mut self.random, &METHODS);
        if is_own && self.random.u32(..8) == 0 {
            method = "DELETE";
        }
        let query = match self.random.u32(..3) {
            0 => format!("?{}", samples::text(&mut self.random, "hostile queries")),
            _ => String::new(),
        };
        let accept = (self.random.u32(..8) == 0).then(|| samples::text(&mut self.random, "accept"));
        let op = self.push(format!("{method} {path}{query}"));
        op.accept = accept.filter(|accept| !accept.contains("protobuf"));
        if matches!(method, "POST" | "PUT" | "PATCH") {
            op.media = Self::usual_media(method);
            op.body = Some(json!({"metadata": {"labels": {"hostile": "1"}}}));
        }
    }

    /// Returns the path of a document, a collection, an object or a subresource, and whether it is in a
    /// namespace of the script, because a deletion must not delete other objects.
    fn some_path(&mut self) -> (String, bool) {
        if self.random.u32(..4) == 0 {
            return (samples::text(&mut self.random, "documents"), false);
        }
        let known = self.object();
        let is_own = known.kind.namespaced;
        let path = match self.random.u32(..6) {
            0 | 1 => known.kind.collection(known.namespace),
            2 => format!("{}/{}", known.path(), samples::text(&mut self.random, "subresources")),
            3 => {
                // The old paths of watches.
                let path =
                    known.path().replacen(&known.kind.prefix, &format!("{}/watch", known.kind.prefix), 1);
                return (format!("{path}?timeoutSeconds=1"), false);
            }
            _ => known.path(),
        };
        (path, is_own)
    }

    /// Returns a path with a change.
    fn distorted(&mut self, path: &str) -> String {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let mut segments: Vec<String> = path.split('/').skip(1).map(str::to_owned).collect();
        let random = &mut self.random;
        let at = random.usize(..segments.len());
        match random.u32(..12) {
            0 | 1 => segments.insert(at, String::new()),
            2 => segments.push(String::new()),
            3 | 4 => segments.insert(at, samples::text(random, "hostile segments")),
            5..8 => segments[at] = samples::text(random, "hostile segments"),
            8 => {
                let length = *pick(random, &[64, 254, 300, 2000]);
                segments[at] = "n".repeat(length);
            }
            // The name of the run must stay readable, to be replaced.
            9 if !segments[at].contains("twin00") => {
                let encode = |text: String, byte: u8| text + &format!("%{byte:02X}");
                let encoded = segments[at].bytes().fold(String::new(), encode);
                segments[at] = encoded;
            }
            10 => segments[at] = segments[at].to_uppercase(),
            _ if segments.len() > 1 => {
                segments.remove(at);
            }
            _ => segments.push(samples::text(random, "hostile segments")),
        }
        let path: String = segments.iter().flat_map(|segment| ["/", segment.as_str()]).collect();
        query.map_or(path.clone(), |query| format!("{path}?{query}"))
    }
}
