//! The samples of a project: the YAML files in `config/samples`.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use kube::Client;

use crate::error::Result;
use crate::output::Output;

/// The folder of the samples.
const FOLDER: &str = "config/samples";

/// A list of files for kustomize. The list is not an object.
const KUSTOMIZATION: &str = "kustomization.yaml";

/// The texts that have been applied, by file.
#[derive(Default)]
pub(super) struct Samples(BTreeMap<String, String>);

impl Samples {
    /// Applies the samples that have changed since the last call. A refused sample is named, and tried again
    /// after a change of the file.
    pub(super) async fn apply(&mut self, root: &Path, client: &Client, out: &mut Output) -> Result<()> {
        for (file, text) in read(&root.join(FOLDER))? {
            if self.0.get(&file) == Some(&text) {
                continue;
            }
            match windlass_dev::apply_manifests(client, &text).await {
                Ok(objects) => objects.iter().for_each(|object| out.line(format_args!("applied {object}"))),
                Err(error) => out.line(format_args!("{FOLDER}/{file}: {error}")),
            }
            self.0.insert(file, text);
        }
        Ok(())
    }
}

fn read(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(texts),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        if is_yaml && name != KUSTOMIZATION {
            texts.insert(name, fs::read_to_string(&path)?);
        }
    }
    Ok(texts)
}
