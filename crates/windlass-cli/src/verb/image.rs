//! `windlass image`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use windlass_image::{Platform, Reference};

use crate::error::Result;
use crate::image::{BuildRequest, BundleRequest, Compression, Connection, Destination, Linking};
use crate::output::Output;

/// Build, push and load container images, without a container engine.
///
/// Images are in a store of this user, `~/.cache/windlass/images`, which all commands and the embedded cluster share.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass image build --tag 127.0.0.1:5000/operator-demo:v1
  windlass image push 127.0.0.1:5000/operator-demo:v1
  windlass image build --tag registry.example.com/op:1.0 --platform linux/amd64,linux/arm64 --push
  windlass image load --kind kind operator-demo:v1
  windlass registry --port 5000                # a registry on the same store

The output of build and push is NAME@sha256:DIGEST, on stdout. Everything else goes to stderr.")]
pub(crate) struct Image {
    #[command(subcommand)]
    verb: ImageVerb,

    /// The folder of the store. Default: windlass/images in $XDG_CACHE_HOME, or in ~/.cache
    #[arg(long, value_name = "DIR", env = crate::image::STORE, global = true)]
    store: Option<PathBuf>,
}

#[derive(Subcommand)]
enum ImageVerb {
    Build(Box<Build>),
    Push(Push),
    Pull(Pull),
    Load(Load),
    List(List),
    Remove(Remove),
    Prune(Prune),
}

impl Image {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let store = crate::image::open(self.store.as_deref())?;
        let notes = &mut Output::stderr();
        match self.verb {
            ImageVerb::Build(build) => {
                let push = build.push;
                let connection = build.connection.clone();
                let tags = build.tags.clone();
                let built = match build.bundle_request() {
                    Some(request) => crate::image::build_bundle(&store, &request, notes)?,
                    None => crate::image::build(&store, build.request(), notes).await?,
                };
                if push {
                    // A single client: standard input has the password once.
                    let registry = Connection::from(connection).registry()?;
                    for tag in &tags {
                        crate::image::push(&store, tag, tag, &registry, notes).await?;
                    }
                }
                built.iter().for_each(|name| out.line(name));
                Ok(())
            }
            ImageVerb::Push(push) => {
                let target = push.target.as_ref().unwrap_or(&push.image);
                let registry = Connection::from(push.connection).registry()?;
                out.line(crate::image::push(&store, &push.image, target, &registry, notes).await?);
                Ok(())
            }
            ImageVerb::Pull(pull) => {
                let platform = pull.platform.unwrap_or_else(Platform::host);
                out.line(
                    crate::image::pull(&store, &pull.image, &platform, &pull.connection.into(), notes)
                        .await?,
                );
                Ok(())
            }
            ImageVerb::Load(load) => {
                crate::image::load(&store, &load.image, &load.to.destination(), notes).await
            }
            ImageVerb::List(_) => crate::image::list(&store, out),
            ImageVerb::Remove(remove) => crate::image::remove(&store, &remove.images),
            ImageVerb::Prune(prune) => crate::image::prune(&store, prune.all, out),
        }
    }
}

/// Build the image of the operator: compile the program, and add the program, CA certificates and an SBOM to an image.
///
/// The program is at /manager and runs as user 65532. The image has no shell. Equal sources make an equal digest, wherever the sources are.
///
/// The program is linked statically with musl if the target and a C compiler for musl are installed. Else the program is linked with the C
/// library of this machine, and the image has a copy of the C library.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass image build --tag registry.example.com/op:1.0
  windlass image build --profile dev           # compiles faster, makes a larger image
  windlass image build --output image.tar      # for docker load, podman load, ctr images import
  windlass image build --output layout/        # an OCI layout
  windlass image build --bundle --tag registry.example.com/op-bundle:1.0

Static programs:        rustup target add x86_64-unknown-linux-musl; apt-get install musl-tools
Other architectures:    rustup target add aarch64-unknown-linux-musl; pip install ziglang; cargo install cargo-zigbuild
The time of files and labels is SOURCE_DATE_EPOCH, or 1970.")]
struct Build {
    /// The name of the image. May be given several times. Default: the name of the project, with the tag latest.
    #[arg(short, long = "tag", value_name = "NAME")]
    tags: Vec<Reference>,

    /// A platform, such as linux/arm64. May be given several times, or as a list with commas. Default: that of this machine.
    #[arg(long = "platform", value_name = "OS/ARCH", value_delimiter = ',')]
    platforms: Vec<Platform>,

    /// The profile of cargo.
    #[arg(long, default_value = "image")]
    profile: String,

    /// The program. Default: that of the project, or the only program of the package.
    #[arg(long, value_name = "NAME")]
    bin: Option<String>,

    /// The C library of the program.
    #[arg(long, value_enum, default_value_t)]
    linking: LinkingArg,

    /// Build the image of the bundle for OLM that `windlass bundle` has written to DIR, in place of the operator's.
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        default_missing_value = "bundle",
        requires = "tags",
        conflicts_with_all = ["platforms", "bin"]
    )]
    bundle: Option<PathBuf>,

    /// The compression of the layer.
    #[arg(long, value_enum, default_value_t)]
    compression: CompressionArg,

    /// Write the image to an archive, if the name ends in .tar, or to a folder as an OCI layout.
    #[arg(long = "output", value_name = "PATH")]
    output: Option<PathBuf>,

    /// Push the image after the build.
    #[arg(long, requires = "tags")]
    push: bool,

    #[command(flatten)]
    connection: ConnectionArgs,
}

impl Build {
    /// Returns the bundle to build an image of. `None` if the image is the operator's.
    fn bundle_request(&self) -> Option<BundleRequest> {
        Some(BundleRequest {
            folder: self.bundle.clone()?,
            tags: self.tags.clone(),
            compression: self.compression.into(),
            output: self.output.clone(),
        })
    }

    fn request(self) -> BuildRequest {
        BuildRequest {
            tags: self.tags,
            platforms: self.platforms,
            profile: self.profile,
            bin: self.bin,
            linking: match self.linking {
                LinkingArg::Auto => None,
                LinkingArg::Static => Some(Linking::Static),
                LinkingArg::Dynamic => Some(Linking::Dynamic),
            },
            compression: self.compression.into(),
            output: self.output,
        }
    }
}

/// The C library of a program.
#[derive(ValueEnum, Clone, Copy, Debug, Default)]
enum LinkingArg {
    /// Static if the tools are there, else dynamic
    #[default]
    Auto,
    /// With musl, in the program
    Static,
    /// With the C library of this machine, copied to the image
    Dynamic,
}

/// The compression of a layer.
#[derive(ValueEnum, Clone, Copy, Debug, Default)]
enum CompressionArg {
    /// For all nodes
    #[default]
    Gzip,
    /// Smaller, for containerd 1.5 and later
    Zstd,
}

impl From<CompressionArg> for Compression {
    fn from(arg: CompressionArg) -> Self {
        match arg {
            CompressionArg::Gzip => Self::Gzip,
            CompressionArg::Zstd => Self::Zstd,
        }
    }
}

/// Push an image of the store to a registry.
///
/// Names and passwords come from `docker login` and `podman login`: $REGISTRY_AUTH_FILE, else
/// $DOCKER_CONFIG/config.json or ~/.docker/config.json with credential helpers, else
/// ~/.config/containers/auth.json.
#[derive(Args)]
struct Push {
    /// The name of the image in the store
    image: Reference,

    /// Another name for the registry
    target: Option<Reference>,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Pull an image from a registry to the store.
#[derive(Args)]
struct Pull {
    /// The name of the image
    image: Reference,

    /// The platform. Default: that of this machine.
    #[arg(long, value_name = "OS/ARCH")]
    platform: Option<Platform>,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// How a registry is reached.
#[derive(Args, Clone)]
struct ConnectionArgs {
    /// The name at the registry, with --password-stdin
    #[arg(long, value_name = "NAME", requires = "password_stdin")]
    username: Option<String>,

    /// Read the password from standard input
    #[arg(long, requires = "username")]
    password_stdin: bool,

    /// Trust the certificates of this file too, in PEM
    #[arg(long = "ca-file", value_name = "FILE")]
    ca_files: Vec<PathBuf>,

    /// Use plain HTTP. Loopback addresses, and registries of windlass.toml ([image] insecure-registries), need no flag.
    #[arg(long)]
    plain_http: bool,
}

impl From<ConnectionArgs> for Connection {
    fn from(args: ConnectionArgs) -> Self {
        Self { user: args.username, ca_files: args.ca_files, plain_http: args.plain_http }
    }
}

/// Load an image of the store into a cluster or a container engine on this machine, without a registry.
///
/// The embedded cluster reads the store, and needs no load.
#[derive(Args)]
struct Load {
    /// The name of the image
    image: Reference,

    #[command(flatten)]
    to: To,
}

/// The cluster or the container engine. Exactly one of these flags is required.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct To {
    /// Docker: `docker load`
    #[arg(long)]
    docker: bool,

    /// Podman: `podman load`
    #[arg(long)]
    podman: bool,

    /// A cluster of kind: `kind load image-archive`
    #[arg(long, value_name = "CLUSTER", num_args = 0..=1, default_missing_value = "kind")]
    kind: Option<String>,

    /// A cluster of k3d: `k3d image import`
    #[arg(long, value_name = "CLUSTER", num_args = 0..=1, default_missing_value = "k3s-default")]
    k3d: Option<String>,

    /// minikube: `minikube image load`
    #[arg(long)]
    minikube: bool,

    /// containerd, in the namespace of Kubernetes: `ctr images import`
    #[arg(long, value_name = "SOCKET", num_args = 0..=1, default_missing_value = "/run/containerd/containerd.sock")]
    containerd: Option<String>,
}

impl To {
    fn destination(&self) -> Destination {
        match (&self.kind, &self.k3d, &self.containerd) {
            (Some(cluster), _, _) => Destination::Kind(cluster.clone()),
            (_, Some(cluster), _) => Destination::K3d(cluster.clone()),
            (_, _, Some(socket)) => Destination::Containerd(socket.clone()),
            _ if self.minikube => Destination::Minikube,
            _ if self.podman => Destination::Podman,
            _ => Destination::Docker,
        }
    }
}

/// List the images of the store.
#[derive(Args)]
struct List {}

/// Remove names from the store. `prune` removes the files.
#[derive(Args)]
struct Remove {
    /// The names of the images
    #[arg(required = true)]
    images: Vec<Reference>,
}

/// Remove the files of images without a name from the store.
#[derive(Args)]
struct Prune {
    /// Remove files of the last hour, too; a running command may be about to name such a file
    #[arg(long)]
    all: bool,
}
