//! Builds an image.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;

use windlass_image::build::Compression;
use windlass_image::{Descriptor, Platform, Reference, Store};

use super::compile::{Linking, Toolchain};
use super::metadata::Metadata;
use super::recipe::{Time, recipe};
use super::sbom;
use crate::error::Result;
use crate::output::Output;
use crate::project::Workspace;

/// An image to build.
#[derive(Debug)]
pub(crate) struct BuildRequest {
    /// The names. Empty: the name of the project.
    pub(crate) tags: Vec<Reference>,
    /// The platforms. Empty: that of this machine.
    pub(crate) platforms: Vec<Platform>,
    /// The profile of cargo.
    pub(crate) profile: String,
    /// The program. `None` is that of the project.
    pub(crate) bin: Option<String>,
    /// The C library. `None` is the best C library that is installed.
    pub(crate) linking: Option<Linking>,
    pub(crate) compression: Compression,
    /// An archive or a folder to write the image to.
    pub(crate) output: Option<PathBuf>,
}

/// Builds an image. Returns the image's names with the digest.
pub(crate) async fn build(store: &Store, request: BuildRequest, notes: &mut Output) -> Result<Vec<String>> {
    let workspace = Workspace::current().ok();
    let folder = workspace.as_ref().map_or_else(std::env::current_dir, |it| Ok(it.root.clone()))?;
    let of_project = workspace.map(|it| it.project.project_name);
    let wanted = request.bin.clone().or(of_project);
    let time = Time::of_environment()?;
    let platforms =
        if request.platforms.is_empty() { vec![Platform::host()] } else { request.platforms.clone() };
    let mut images: Vec<(Descriptor, Vec<u8>)> = Vec::new();
    let mut name = String::new();
    for platform in &platforms {
        let toolchain = Toolchain::choose(platform, request.linking, notes)?;
        let metadata = Metadata::load(&folder, &toolchain.target).await?;
        let (package, bin) = metadata.program(wanted.as_deref())?;
        let root = &metadata.workspace_root;
        let program = toolchain.compile(root, &bin, &request.profile, notes).await?;
        let document = sbom::document(&metadata, package, &time.text)?;
        let revision = revision(root);
        let recipe = recipe(
            package,
            &program,
            platform,
            &document,
            revision.as_deref(),
            &time,
            request.compression,
            notes,
        )?;
        images.push((windlass_image::build::image(store, &recipe)?, document));
        name = bin;
    }
    let top = match &images[..] {
        [(only, _)] => only.clone(),
        several => {
            windlass_image::build::index(store, several.iter().map(|(image, _)| image.clone()).collect())?
        }
    };
    let tags = if request.tags.is_empty() { vec![name.parse()?] } else { request.tags };
    for tag in &tags {
        store.tag(tag, &top)?;
        for (image, document) in &images {
            let referrer = windlass_image::build::attach(store, image, sbom::MEDIA_TYPE, document)?;
            store.tag(&tag.with_digest(referrer.digest.clone()), &referrer)?;
        }
    }
    finish(store, &tags, &top, &platforms[0], request.output.as_deref(), notes)
}

/// Writes a built image to an output, if there is an output, and says the size. Returns the names with the digest.
pub(super) fn finish(
    store: &Store,
    tags: &[Reference],
    image: &Descriptor,
    platform: &Platform,
    output: Option<&Path>,
    notes: &mut Output,
) -> Result<Vec<String>> {
    if let Some(output) = output {
        write(store, &tags[0], platform, output)?;
    }
    let size: u64 = store.find_for(&tags[0], platform)?.map_or(0, |image| image.size());
    notes.line(format_args!("built {}: {}", tags[0], super::megabytes(size)));
    Ok(tags.iter().map(|tag| tag.with_digest(image.digest.clone()).to_string()).collect())
}

/// Writes an image to an archive or to a folder.
fn write(store: &Store, image: &Reference, platform: &Platform, output: &Path) -> Result<()> {
    let is_archive = output.extension().is_some_and(|extension| extension == "tar");
    if !is_archive {
        return Ok(windlass_image::build::copy(store, image, &Store::open(output)?)?);
    }
    let draft = output.with_extension("tar.new");
    let file = File::create(&draft).map_err(|error| format!("cannot write {}: {error}", draft.display()))?;
    let written = windlass_image::build::archive(store, image, platform, &mut BufWriter::new(file));
    if let Err(error) = written {
        let _ = std::fs::remove_file(&draft);
        return Err(error.into());
    }
    std::fs::rename(&draft, output)
        .map_err(|error| format!("cannot write {}: {error}", output.display()).into())
}

/// Returns the commit of a folder, if git is there and the folder is in a repository.
fn revision(root: &Path) -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
