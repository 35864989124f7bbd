//! `cargo xtask codegen`: packs the data files of `catalog/` into the blob of `windlass-schema`
//! (`crates/windlass-schema/src/catalog/` reads the format), and writes the apply configurations of
//! `windlass-apply` and the clients of `windlass-client`. The task needs no network.

mod apply;
#[path = "../../crates/windlass-schema/src/catalog/bits.rs"]
mod bits;
mod clients;
mod generated_files;
mod pack;
mod proto;
mod types;

use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::{Map, Value};

use crate::{Result, project};
use pack::Packer;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail if a generated file differs from the data files
    #[arg(long)]
    check: bool,
}

const BLOB: &str = "crates/windlass-schema/src/catalog/builtin.bin";
/// The blob of an older version, and the folder of the data files.
const OLDER: [(&str, &str); 1] = [("crates/windlass-schema/src/catalog/builtin-1.36.bin", "catalog/1.36")];
/// The data files of the version whose types in k8s-openapi the workspace uses (`v1_36`): apply configurations and clients are made
/// of these types.
const TYPES: &str = "catalog/1.36";

pub(crate) fn run(args: Args) -> Result {
    let root = project::root();
    for (path, folder) in OLDER {
        blob(root, path, &DataFiles::read(&root.join(folder))?, args.check)?;
    }
    blob(root, BLOB, &DataFiles::read(&root.join("catalog"))?, args.check)?;
    let data = DataFiles::read(&root.join(TYPES))?;
    apply::run(root, &data, args.check)?;
    clients::run(root, &data, args.check)
}

/// Writes the blob of `windlass-schema`, or compares it.
fn blob(root: &Path, path: &str, data: &DataFiles, check: bool) -> Result {
    let raw = encode(data)?;
    let file = root.join(path);
    if check {
        // Compare the unpacked bytes, because another version of the compressor may write other bytes.
        let current = fs::read(&file).ok().and_then(|blob| unpack(&blob));
        return match current {
            Some(current) if current == raw => Ok(()),
            _ => Err(format!("{path} differs from catalog/; run `cargo xtask codegen`").into()),
        };
    }
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&raw)?;
    let packed = encoder.finish()?;
    println!("{path}: {} bytes, {} unpacked", packed.len(), raw.len());
    Ok(fs::write(file, packed)?)
}

fn unpack(blob: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::DeflateDecoder::new(blob), &mut out).ok()?;
    Some(out)
}

/// The data files of `catalog/`.
struct DataFiles {
    version: String,
    resources: Map<String, Value>,
    types: Map<String, Value>,
    messages: Map<String, Value>,
    presence: Map<String, Value>,
    defaults: Map<String, Value>,
    go_names: Map<String, Value>,
}

impl DataFiles {
    fn read(folder: &Path) -> Result<Self> {
        let text = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let object = |name: &str| -> Result<Map<String, Value>> {
            serde_json::from_str(&text(name)?).map_err(|error| format!("{name}: {error}").into())
        };
        Ok(Self {
            version: text("version")?.trim().trim_start_matches('v').to_owned(),
            resources: object("resources.json")?,
            types: object("types.json")?,
            messages: object("protobuf.json")?,
            presence: object("presence.json")?,
            defaults: object("defaults.json")?,
            go_names: object("go_names.json")?,
        })
    }
}

/// Encodes the table of strings, then version, definitions, kinds and resources, with indexes for strings.
fn encode(data: &DataFiles) -> Result<Vec<u8>> {
    let mut packer = Packer::default();
    let version = packer.string(&data.version);
    packer.number(version);
    types::definitions(&mut packer, data)?;
    kinds(&mut packer, data);
    resources(&mut packer, data);
    Ok(packer.finish())
}

/// Writes the definition of each kind: rows of group, version, kind, definition.
fn kinds(packer: &mut Packer, data: &DataFiles) {
    let mut rows = Vec::new();
    for (index, schema) in data.types.values().enumerate() {
        for kind in schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten() {
            let text = |name: &str| kind[name].as_str().unwrap_or_default().to_owned();
            rows.push((text("group"), text("version"), text("kind"), index as u32));
        }
    }
    rows.sort();
    packer.number(rows.len() as u32);
    for (group, version, kind, definition) in rows {
        packer.text(&group);
        packer.text(&version);
        packer.text(&kind);
        packer.number(definition);
    }
}

/// Writes the group-versions in the order of the server, with resources and subresources.
fn resources(packer: &mut Packer, data: &DataFiles) {
    let mut versions: Vec<(&String, &Value)> = data.resources.iter().collect();
    versions.sort_by_key(|(_, value)| value["rank"].as_u64());
    packer.number(versions.len() as u32);
    for (name, value) in versions {
        let (group, version) = name.split_once('/').unwrap_or(("", name));
        packer.text(group);
        packer.text(version);
        let rows: Vec<&Value> = value["resources"].as_array().into_iter().flatten().collect();
        packer.number(rows.len() as u32);
        for row in rows {
            resource(packer, row, group, version);
        }
    }
}

fn resource(packer: &mut Packer, row: &Value, group: &str, version: &str) {
    let text = |name: &str| row[name].as_str().unwrap_or_default();
    let list = |name: &str| -> Vec<&str> {
        row[name].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    };
    packer.text(text("name"));
    packer.text(text("singularName"));
    packer.text(text("kind"));
    let explicit = !text("version").is_empty();
    packer.text(if explicit { text("group") } else { group });
    packer.text(if explicit { text("version") } else { version });
    packer.number(u32::from(row["namespaced"] == true));
    for name in ["verbs", "shortNames", "categories"] {
        let values = list(name);
        packer.number(values.len() as u32);
        for value in values {
            packer.text(value);
        }
    }
}
