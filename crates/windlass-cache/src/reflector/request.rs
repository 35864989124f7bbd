//! The requests of a reflector.

use std::fmt;

/// The parameters of a list or watch. The driver adds the path and the selectors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListWatch {
    /// True for a watch.
    pub watch: bool,
    /// True if the watch begins with the existing objects.
    pub send_initial_events: bool,
    /// The resource version at which a watch begins. A list without a version is consistent.
    pub resource_version: Option<String>,
    /// The page size of a list.
    pub limit: Option<u32>,
    /// The continue token of the next page.
    pub continue_token: Option<String>,
    /// The time after which the server ends the watch, in seconds.
    pub timeout_seconds: Option<u64>,
}

impl ListWatch {
    /// Returns the query parameters in a fixed order, not URL-encoded.
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
