//! What a reflector asks the server for.

use std::fmt;

/// A GET of the collection: a list or a watch. Selectors and the path are the shell's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListWatch {
    /// A watch, not a list.
    pub watch: bool,
    /// The watch begins with the objects that exist.
    pub send_initial_events: bool,
    /// Where a watch begins; a list without it is consistent.
    pub resource_version: Option<String>,
    /// Page size of a list.
    pub limit: Option<u32>,
    /// The page that a list goes on with.
    pub continue_token: Option<String>,
    /// When the server is to end the watch, in seconds.
    pub timeout_seconds: Option<u64>,
}

impl ListWatch {
    /// The parameters of the query, not yet encoded, in a fixed order.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut parameters = Vec::new();
        if self.watch {
            parameters.push(("watch", "true".to_owned()));
            parameters.push(("allowWatchBookmarks", "true".to_owned()));
        }
        if self.send_initial_events {
            parameters.push(("sendInitialEvents", "true".to_owned()));
            parameters.push(("resourceVersionMatch", "NotOlderThan".to_owned()));
        }
        let version = self.resource_version.clone().map(|version| ("resourceVersion", version));
        let limit = self.limit.map(|limit| ("limit", limit.to_string()));
        let token = self.continue_token.clone().map(|token| ("continue", token));
        let timeout = self.timeout_seconds.map(|seconds| ("timeoutSeconds", seconds.to_string()));
        parameters.extend([version, limit, token, timeout].into_iter().flatten());
        parameters
    }
}

impl fmt::Display for ListWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters = self.parameters();
        let parameters: Vec<_> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        write!(f, "GET ?{}", parameters.join("&"))
    }
}
