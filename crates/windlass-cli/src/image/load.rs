//! Loads images into container engines and clusters, with the commands of the engines.

use std::process::Stdio;

use tokio::process::Command;
use windlass_image::{Platform, Reference, Store};

use crate::error::{Advice, Result};
use crate::output::Output;

/// A container engine or a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Docker,
    Podman,
    Kind(String),
    K3d(String),
    Minikube,
    /// The socket of containerd.
    Containerd(String),
}

impl Destination {
    /// Returns the command that loads an archive.
    fn command(&self, archive: &str) -> Vec<String> {
        let words: Vec<&str> = match self {
            Self::Docker => vec!["docker", "load", "--input", archive],
            Self::Podman => vec!["podman", "load", "--input", archive],
            Self::Kind(cluster) => vec!["kind", "load", "image-archive", archive, "--name", cluster],
            Self::K3d(cluster) => vec!["k3d", "image", "import", archive, "--cluster", cluster],
            Self::Minikube => vec!["minikube", "image", "load", archive],
            Self::Containerd(socket) => {
                vec![
                    "ctr",
                    "--address",
                    socket,
                    "--namespace",
                    "k8s.io",
                    "images",
                    "import",
                    "--all-platforms",
                    archive,
                ]
            }
        };
        words.into_iter().map(str::to_owned).collect()
    }
}

/// Loads an image.
pub(crate) async fn load(
    store: &Store,
    image: &Reference,
    to: &Destination,
    notes: &mut Output,
) -> Result<()> {
    let mut file = tempfile::Builder::new().prefix("windlass-image-").suffix(".tar").tempfile()?;
    windlass_image::build::archive(store, image, &Platform::host(), file.as_file_mut())?;
    let words = to.command(&file.path().to_string_lossy());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    let status = command.status().await.map_err(|error| {
        let program = &words[0];
        Advice::new(
            format!("cannot run {program}: {error}"),
            format!("install {program}, and put {program} on the PATH"),
        )
    })?;
    if !status.success() {
        return Err(format!("`{}` ended with {status}", words.join(" ")).into());
    }
    notes.line(format_args!("loaded {image}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_destination_has_its_command() {
        let command = |destination: Destination| destination.command("x.tar").join(" ");
        assert_eq!(command(Destination::Docker), "docker load --input x.tar");
        assert_eq!(command(Destination::Kind("dev".into())), "kind load image-archive x.tar --name dev");
        assert_eq!(command(Destination::K3d("dev".into())), "k3d image import x.tar --cluster dev");
        assert_eq!(
            command(Destination::Containerd("/s".into())),
            "ctr --address /s --namespace k8s.io images import --all-platforms x.tar"
        );
    }
}
