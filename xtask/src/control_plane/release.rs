//! The releases that can be built: the newest first.

use std::fmt;
use std::str::FromStr;

/// A release of Kubernetes, with the release of etcd that stores its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Release {
    pub(super) kubernetes: &'static str,
    pub(super) etcd: &'static str,
}

/// The first release is the default: the release of the catalog that the embedded server answers as.
const RELEASES: [Release; 2] =
    [Release { kubernetes: "1.37.2", etcd: "3.7.3" }, Release { kubernetes: "1.36.3", etcd: "3.6.16" }];

impl Default for Release {
    fn default() -> Self {
        RELEASES[0]
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kubernetes)
    }
}

impl FromStr for Release {
    type Err = String;

    /// Finds a release by its minor version (`1.36`) or its full version (`1.36.3`), with or without a leading `v`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = text.strip_prefix('v').unwrap_or(text);
        let fits = |release: &&Release| {
            release.kubernetes == wanted
                || release.kubernetes.rsplit_once('.').is_some_and(|(minor, _)| minor == wanted)
        };
        RELEASES.iter().find(fits).copied().ok_or_else(|| {
            let known = RELEASES.map(|release| release.kubernetes).join(" and ");
            format!("unknown release; known releases: {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_found_by_its_minor_version() {
        assert_eq!("1.36".parse::<Release>().unwrap().kubernetes, "1.36.3");
        assert_eq!("v1.37.2".parse::<Release>(), Ok(Release::default()));
        let error = "1.3".parse::<Release>().unwrap_err();
        assert_eq!(error, "unknown release; known releases: 1.37.2 and 1.36.3");
    }
}
