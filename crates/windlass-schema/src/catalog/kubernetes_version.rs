//! The versions of Kubernetes whose kinds are built in.

use std::fmt;
use std::str::FromStr;

/// A minor version of Kubernetes whose kinds are built into this crate.
///
/// ```
/// use windlass_schema::{Catalog, KubernetesVersion};
///
/// let version: KubernetesVersion = "1.36".parse()?;
/// assert_eq!(Catalog::of(version).minor_version(), "1.36");
/// assert!(version < KubernetesVersion::default());
/// # Ok::<(), windlass_schema::UnknownKubernetesVersion>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum KubernetesVersion {
    /// Kubernetes 1.36.
    V1_36,
    /// Kubernetes 1.37, the default.
    #[default]
    V1_37,
}

impl KubernetesVersion {
    /// All versions, the oldest first.
    pub const ALL: [Self; 2] = [Self::V1_36, Self::V1_37];

    /// Returns the text of the version, such as `1.36`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1_36 => "1.36",
            Self::V1_37 => "1.37",
        }
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error of a version of Kubernetes whose kinds are not built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownKubernetesVersion;

impl fmt::Display for UnknownKubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = KubernetesVersion::ALL.map(KubernetesVersion::as_str).join(" and ");
        write!(f, "unknown version of Kubernetes: the built-in versions are {known}")
    }
}

impl std::error::Error for UnknownKubernetesVersion {}

impl FromStr for KubernetesVersion {
    type Err = UnknownKubernetesVersion;

    /// Parses a minor version (`1.36`) or the version of a patch release (`v1.36.3`), which has the kinds of its minor
    /// version.
    fn from_str(text: &str) -> Result<Self, UnknownKubernetesVersion> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let is_patch = |rest: &str| rest.strip_prefix('.').is_some_and(|patch| patch.parse::<u32>().is_ok());
        let fits = |version: &Self| {
            text.strip_prefix(version.as_str()).is_some_and(|rest| rest.is_empty() || is_patch(rest))
        };
        Self::ALL.into_iter().find(fits).ok_or(UnknownKubernetesVersion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patch_releases_have_the_kinds_of_their_minor_version() {
        assert_eq!("1.36".parse(), Ok(KubernetesVersion::V1_36));
        assert_eq!("v1.37.2".parse(), Ok(KubernetesVersion::V1_37));
        for text in ["", "1", "1.3", "1.361", "1.36.", "1.36.x", "1.38"] {
            assert_eq!(text.parse::<KubernetesVersion>(), Err(UnknownKubernetesVersion), "{text}");
        }
    }
}
