//! The logs of containers: files in the format of the CRI, with rotation.
//!
//! A container's log is the file of [`ContainerSpec::log`](crate::ContainerSpec::log), at most 10 MB long, and up to 4 older files with
//! the suffixes `.1` (the newest) to `.4`.

mod files;
mod line;
mod reader;
mod tail;
mod writer;

pub use self::files::remove;
#[cfg(all(target_os = "linux", feature = "cri"))]
pub(crate) use self::files::rotate;
pub use self::line::{LogLine, LogStream};
pub use self::reader::{LogOptions, read};
pub use self::tail::last_lines;
#[cfg(all(target_os = "linux", feature = "cri"))]
pub(crate) use self::writer::LARGEST;
pub use self::writer::LogWriter;
