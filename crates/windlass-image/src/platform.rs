//! Platforms: an operating system and an architecture.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The platform that an image runs on, in Go's terms: `linux/amd64`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Platform {
    /// The architecture: `amd64`, `arm64`.
    pub architecture: String,
    /// The operating system: `linux`.
    pub os: String,
    /// The variant of the architecture: `v7` of `arm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

impl Platform {
    /// Returns Linux on the architecture of this machine.
    pub fn host() -> Self {
        Self::linux(std::env::consts::ARCH)
    }

    /// Returns Linux on an architecture with Rust's or Go's name.
    pub fn linux(architecture: &str) -> Self {
        let architecture = match architecture {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "powerpc64le" => "ppc64le",
            "x86" => "386",
            "loongarch64" => "loong64",
            other => other,
        };
        Self { architecture: architecture.to_owned(), os: "linux".to_owned(), variant: None }
    }

    /// Returns Rust's name of the architecture, as in a target triple.
    pub fn rust_architecture(&self) -> &str {
        match self.architecture.as_str() {
            "amd64" => "x86_64",
            "arm64" => "aarch64",
            "ppc64le" => "powerpc64le",
            "riscv64" => "riscv64gc",
            "386" => "i686",
            "loong64" => "loongarch64",
            other => other,
        }
    }

    /// Returns whether a program for `offered` runs on this platform. A platform without a variant runs each variant.
    pub fn accepts(&self, offered: &Self) -> bool {
        let variant = self.variant.is_none() || self.variant == offered.variant || offered.variant.is_none();
        self.os == offered.os && self.architecture == offered.architecture && variant
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        self.variant.iter().try_for_each(|variant| write!(f, "/{variant}"))
    }
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let (os, architecture, variant) = match parts[..] {
            [os, architecture] => (os, architecture, None),
            [os, architecture, variant] => (os, architecture, Some(variant.to_owned())),
            _ => return Err(format!("expected OS/ARCHITECTURE such as linux/amd64, not {text:?}")),
        };
        if os != "linux" || architecture.is_empty() {
            return Err(format!("images are for linux, such as linux/amd64 or linux/arm64, not {text:?}"));
        }
        Ok(Self { variant, ..Self::linux(architecture) })
    }
}
