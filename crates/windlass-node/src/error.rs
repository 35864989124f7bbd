//! Errors of a [`Runtime`](crate::Runtime).

/// Why an operation of a runtime failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The specification of the pod cannot be met: the user must not be root, for example. A kubelet shows `CreateContainerConfigError`.
    #[error("{0}")]
    Config(String),
    /// The container could not be created from its image: the image has no command, for example. A kubelet shows `CreateContainerError`.
    #[error("{0}")]
    Create(String),
    /// The program could not be started: the program does not exist, for example. A kubelet shows `RunContainerError`.
    #[error("{0}")]
    Start(String),
    /// There is no such sandbox, container or image.
    #[error("{0} not found")]
    NotFound(String),
    /// The sandbox of a container has ended by itself, with all containers. A kubelet makes another sandbox.
    #[error("sandbox {0} has ended")]
    SandboxEnded(String),
    /// This runtime, or this machine, cannot do it.
    #[error("{0}")]
    Unsupported(String),
    /// The operating system refused an operation.
    #[error("{doing}: {error}")]
    Io {
        /// The operation, with the path or address.
        doing: String,
        /// The answer of the operating system.
        error: std::io::Error,
    },
}

/// Why an image could not be pulled. The text has the registry's own words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PullError {
    /// The reference does not parse. A kubelet shows `InvalidImageName`.
    #[error("{0}")]
    InvalidName(String),
    /// The registry answered that the image does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The registry refused the credentials, or wants credentials.
    #[error("{0}")]
    Unauthorized(String),
    /// The registry could not be reached, or failed. A retry may succeed.
    #[error("{0}")]
    Unavailable(String),
    /// The image is broken or hostile: a digest does not match, a path leaves the root, a limit is exceeded.
    #[error("{0}")]
    Invalid(String),
    /// The image could not be stored: the disk is full, for example.
    #[error("{0}")]
    Storage(String),
}
