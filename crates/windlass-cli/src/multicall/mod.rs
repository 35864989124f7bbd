//! The programs that test frameworks start: the command behaves as a program when called by the program's
//! name.

mod etcd;
mod etcd_health;
mod flags;
mod kube_apiserver;

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use tokio::runtime::Builder;

use crate::error::Result;
use crate::output::Output;

/// A program that the command stands in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applet {
    KubeApiserver,
    Etcd,
}

impl Applet {
    pub(crate) const ALL: [Self; 2] = [Self::KubeApiserver, Self::Etcd];

    /// Returns the name of the program.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::KubeApiserver => "kube-apiserver",
            Self::Etcd => "etcd",
        }
    }

    /// Returns the applet that a program name asks for.
    pub(crate) fn of(program: &OsStr) -> Option<Self> {
        let name = Path::new(program).file_stem()?;
        Self::ALL.into_iter().find(|applet| name == applet.name())
    }

    /// Runs the program with the arguments of the process, until a signal stops it.
    pub(crate) fn main(self) -> ExitCode {
        match self.run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                Output::stderr().line(format_args!("error: {error}"));
                ExitCode::FAILURE
            }
        }
    }

    fn run(self) -> Result<()> {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let result = runtime.block_on(async {
            match self {
                Self::KubeApiserver => kube_apiserver::run().await,
                Self::Etcd => etcd::run().await,
            }
        });
        runtime.shutdown_background();
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_program_decides() {
        let of = |name: &str| Applet::of(OsStr::new(name));
        assert_eq!(of("/assets/kube-apiserver"), Some(Applet::KubeApiserver));
        assert_eq!(of("etcd"), Some(Applet::Etcd));
        assert_eq!(of("windlass"), None);
        assert_eq!(of("kube-apiserver-2"), None);
    }
}
