//! Builds the image of a bundle for OLM.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use windlass_codegen::manifests::documents;
use windlass_image::build::{Compression, Files, Recipe};
use windlass_image::{Config, Platform, Reference, Store};

use super::build::finish;
use super::recipe::Time;
use crate::error::{Advice, Result};
use crate::output::Output;

/// The file of a bundle with the annotations that become labels of the image.
const ANNOTATIONS: &str = "metadata/annotations.yaml";

/// A bundle to build an image of.
#[derive(Debug)]
pub(crate) struct BundleRequest {
    /// The folder that `windlass bundle` has written.
    pub(crate) folder: PathBuf,
    /// The names of the image.
    pub(crate) tags: Vec<Reference>,
    pub(crate) compression: Compression,
    /// An archive or a folder to write the image to.
    pub(crate) output: Option<PathBuf>,
}

/// Builds the image of a bundle: the folder's files, and OLM's labels of a bundle. Returns the names with the
/// digest.
pub(crate) fn build_bundle(
    store: &Store,
    request: &BundleRequest,
    notes: &mut Output,
) -> Result<Vec<String>> {
    let mut files = Files::new();
    add(&mut files, &request.folder, "")?;
    let (time, platform) = (Time::of_environment()?, Platform::host());
    let recipe = Recipe {
        files,
        config: Config { labels: labels(&request.folder.join(ANNOTATIONS))?, ..Config::default() },
        platform: platform.clone(),
        time: time.seconds,
        created: time.text,
        created_by: "windlass image build --bundle".to_owned(),
        compression: request.compression,
    };
    let image = windlass_image::build::image(store, &recipe)?;
    for tag in &request.tags {
        store.tag(tag, &image)?;
    }
    finish(store, &request.tags, &image, &platform, request.output.as_deref(), notes)
}

/// Reads the annotations of a bundle.
fn labels(path: &Path) -> Result<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Advice::new(
            format!("cannot read {}: {error}", path.display()),
            "`windlass bundle` writes a bundle to bundle/",
        )
    })?;
    let documents = documents(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let annotations = documents.first().and_then(|document| document["annotations"].as_object());
    let annotations = annotations.ok_or_else(|| format!("{} has no annotations", path.display()))?;
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    Ok(annotations.iter().filter_map(text).collect())
}

/// Adds the files of a folder and of all folders below.
fn add(files: &mut Files, folder: &Path, below: &str) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(|name| format!("{below}/{name}")) else {
            return Err(format!("the name of {} is not UTF-8", entry.path().display()).into());
        };
        if entry.file_type()?.is_dir() {
            add(files, &entry.path(), &name)?;
        } else {
            files.copy(&name, 0o644, &entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn request(folder: &Path) -> BundleRequest {
        BundleRequest {
            folder: folder.to_owned(),
            tags: vec!["example.com/op-bundle:1.0".parse().unwrap()],
            compression: Compression::default(),
            output: None,
        }
    }

    #[test]
    fn the_annotations_of_a_bundle_are_the_labels_of_its_image_and_equal_bundles_have_one_digest() {
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("bundle");
        fs::create_dir_all(bundle.join("metadata")).unwrap();
        fs::create_dir_all(bundle.join("manifests")).unwrap();
        fs::write(bundle.join("manifests/op.clusterserviceversion.yaml"), "kind: ClusterServiceVersion\n")
            .unwrap();
        let annotations = "annotations:\n  operators.operatorframework.io.bundle.package.v1: op\n";
        fs::write(bundle.join(ANNOTATIONS), annotations).unwrap();
        let store = Store::open(folder.path().join("store")).unwrap();
        let built = build_bundle(&store, &request(&bundle), &mut Output::stderr()).unwrap();
        let again = build_bundle(&store, &request(&bundle), &mut Output::stderr()).unwrap();
        assert_eq!(built, again);
        let image = store.find(&request(&bundle).tags[0]).unwrap().unwrap();
        let label = &image.config().labels["operators.operatorframework.io.bundle.package.v1"];
        assert_eq!(label, "op");
    }

    #[test]
    fn a_folder_without_a_bundle_is_named_with_advice() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("store")).unwrap();
        let error = build_bundle(&store, &request(folder.path()), &mut Output::stderr()).unwrap_err();
        assert!(error.to_string().contains(ANNOTATIONS), "{error}");
    }
}
