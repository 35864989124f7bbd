//! The contents of an operator's image.

use std::path::Path;

use jiff::Timestamp;
use windlass_image::build::{Compression, Files, Recipe};
use windlass_image::{Config, Platform};

use super::metadata::Package;
use super::{program, time_zones};
use crate::error::Result;
use crate::output::Output;

/// The path of the program: the command of the generated Deployment.
pub(super) const PROGRAM: &str = "/manager";

/// The user of the program. A kubelet checks `runAsNonRoot` only with a number.
const USER: &str = "65532:65532";

/// The CA certificates in the image, where all TLS libraries look.
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

/// The files with the CA certificates of Linux distributions and macOS.
const CERTIFICATE_FILES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

const PASSWD: &str = "root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n";

const GROUP: &str = "root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n";

/// The time of an image.
#[derive(Clone, Debug)]
pub(super) struct Time {
    pub(super) seconds: u64,
    /// In RFC 3339.
    pub(super) text: String,
}

impl Time {
    /// Returns the time of `SOURCE_DATE_EPOCH`, or 1970.
    pub(super) fn of_environment() -> Result<Self> {
        let variable = std::env::var("SOURCE_DATE_EPOCH").unwrap_or_default();
        let seconds: i64 = if variable.is_empty() {
            0
        } else {
            variable
                .parse()
                .map_err(|_| format!("SOURCE_DATE_EPOCH is no number of seconds: {variable:?}"))?
        };
        let text = Timestamp::from_second(seconds)?.to_string();
        Ok(Self { seconds: u64::try_from(seconds)?, text })
    }
}

/// Returns the recipe of a program's image.
#[expect(clippy::too_many_arguments, reason = "each is a different part of the image")]
pub(super) fn recipe(
    package: &Package,
    program: &Path,
    platform: &Platform,
    sbom: &[u8],
    revision: Option<&str>,
    time: &Time,
    compression: Compression,
    notes: &mut Output,
) -> Result<Recipe> {
    let mut files = Files::new();
    program::add(&mut files, PROGRAM, program, platform)?;
    files.bytes("etc/passwd", 0o644, PASSWD);
    files.bytes("etc/group", 0o644, GROUP);
    files.bytes("etc/nsswitch.conf", 0o644, "hosts: files dns\n");
    files.folder("home/nonroot", 0o755);
    files.folder("tmp", 0o1777);
    files.bytes(&format!("usr/share/sbom/{}.cdx.json", package.name), 0o644, sbom);
    match CERTIFICATE_FILES.iter().map(Path::new).find(|file| file.is_file()) {
        Some(file) => files.copy(CERTIFICATES, 0o644, file),
        None => notes.line(
            "warning: this machine has no CA certificates, and the image has none: install ca-certificates",
        ),
    }
    time_zones::add(&mut files);
    let labels = [
        ("title", Some(package.name.clone())),
        ("description", package.description.clone()),
        ("version", Some(package.version.clone())),
        ("licenses", package.license.clone()),
        ("source", package.repository.clone()),
        ("revision", revision.map(str::to_owned)),
        ("created", Some(time.text.clone())),
    ];
    let labels = labels
        .into_iter()
        .filter_map(|(key, value)| Some((format!("org.opencontainers.image.{key}"), value?)));
    let config = Config {
        user: USER.to_owned(),
        env: vec![
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
            format!("SSL_CERT_FILE=/{CERTIFICATES}"),
        ],
        entrypoint: vec![PROGRAM.to_owned()],
        working_dir: "/".to_owned(),
        labels: labels.collect(),
        ..Config::default()
    };
    Ok(Recipe {
        files,
        config,
        platform: platform.clone(),
        time: time.seconds,
        created: time.text.clone(),
        created_by: "windlass image build".to_owned(),
        compression,
    })
}
