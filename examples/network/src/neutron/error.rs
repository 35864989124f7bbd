//! Why a request failed.

/// Why a request to Neutron or Keystone failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL or the credentials are not usable.
    #[error("{0}")]
    Config(String),
    /// No complete response arrived. The request may have been carried out.
    #[error("no response from {server}: {reason}")]
    Unreachable {
        /// The server: `Neutron` or `Keystone`.
        server: &'static str,
        /// What happened.
        reason: String,
    },
    /// The server refused the credentials or the token.
    #[error("{server} refuses the credentials: {message}")]
    Unauthorized {
        /// The server: `Neutron` or `Keystone`.
        server: &'static str,
        /// Its words.
        message: String,
    },
    /// The server answered with an error.
    #[error("{server} answers {code} {kind}: {message}")]
    Refused {
        /// The server: `Neutron` or `Keystone`.
        server: &'static str,
        /// The status code of HTTP.
        code: u16,
        /// The type of the error, such as `OverQuota`.
        kind: String,
        /// Its words.
        message: String,
    },
    /// The body of a response does not agree with the API.
    #[error("{server} sent a body that cannot be read: {reason}")]
    Undecodable {
        /// The server: `Neutron` or `Keystone`.
        server: &'static str,
        /// The problem.
        reason: String,
    },
}

impl Error {
    /// Returns whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Returns whether the project has reached a quota.
    pub fn is_quota_exceeded(&self) -> bool {
        matches!(self, Self::Refused { kind, .. } if kind == "OverQuota")
    }

    /// Returns whether the state of an object forbids the change: the object is in use, or was changed
    /// meanwhile.
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409) && !self.is_quota_exceeded()
    }

    /// Returns whether the credentials or the token were refused.
    pub fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Unauthorized { .. })
    }

    /// Returns whether the same request will be refused again, until a person changes the request, a quota, a
    /// policy, or the server.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Config(_) => true,
            Self::Refused { code, .. } => {
                // Not found: deleted meanwhile. Conflict: in use. Too many requests: now.
                let passes = matches!(code, 404 | 408 | 409 | 429) && !self.is_quota_exceeded();
                (400..500).contains(code) && !passes
            }
            _ => false,
        }
    }

    /// Returns the reason of a condition, in one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Config(_) => "InvalidConfiguration",
            Self::Unreachable { .. } => "NeutronUnavailable",
            Self::Unauthorized { .. } => "Unauthorized",
            Self::Refused { .. } if self.is_quota_exceeded() => "QuotaExceeded",
            Self::Refused { .. } if self.is_conflict() => "Conflict",
            Self::Refused { code: 500.., .. } => "NeutronError",
            Self::Refused { .. } => "Refused",
            Self::Undecodable { .. } => "NeutronError",
        }
    }

    fn code(&self) -> Option<u16> {
        if let Self::Refused { code, .. } = self { Some(*code) } else { None }
    }
}
