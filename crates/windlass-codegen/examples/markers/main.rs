//! Prints definitions, or compares the definitions with the output of controller-gen for the same types in
//! Go. `cargo xtask controller-gen` runs this program.
#![allow(clippy::print_stdout, reason = "it prints differences")]

mod articles;
mod difference;
mod everything;

use std::{error::Error, fs, path::Path};

use kube::CustomResourceExt as _;
use serde_json::Value;
use windlass_codegen::{
    Inventory,
    manifests::{Manifests, Options, documents},
};

use self::difference::{Difference, differences};

/// Prints the definitions. With an argument, a folder with definitions of controller-gen, prints the
/// differences, and fails if a difference has no known reason.
fn main() -> Result<(), Box<dyn Error>> {
    let Some(folder) = std::env::args_os().nth(1) else {
        let files = manifests()?.files().into_iter();
        files
            .filter(|(path, _)| path.starts_with("config/crd/bases/"))
            .for_each(|(_, text)| print!("---\n{text}"));
        return Ok(());
    };
    let theirs = definitions(Path::new(&folder))?;
    let ours = manifests()?;
    let mut unknown = 0;
    for own in ours.crds() {
        let name = own["metadata"]["name"].as_str().unwrap_or_default();
        let their = theirs.iter().find(|their| their["metadata"]["name"] == name);
        let their = their.ok_or_else(|| format!("controller-gen made no {name}"))?;
        let found = differences(own, their);
        unknown += found.iter().filter(|difference| difference.reason.is_none()).count();
        println!("{name}: {} differences", found.len());
        found.iter().for_each(print);
    }
    if unknown == 0 { Ok(()) } else { Err(format!("{unknown} differences have no reason").into()) }
}

fn print(difference: &Difference) {
    let Difference { path, ours, theirs, reason } = difference;
    let reason = reason.unwrap_or("NO REASON IS KNOWN");
    println!("  {path}: ours {ours}, controller-gen {theirs}: {reason}");
}

fn manifests() -> Result<Manifests, Box<dyn Error>> {
    let crds = vec![
        everything::Everything::crd(),
        everything::OldEverything::crd(),
        articles::CustomPod::crd(),
        articles::IPPool::crd(),
        articles::Network::crd(),
        articles::Bar::crd(),
    ];
    let inventory = Inventory { format: Inventory::FORMAT, crds, ..Inventory::default() };
    Ok(Manifests::new(&inventory, Options::new("markers"))?)
}

fn definitions(folder: &Path) -> Result<Vec<Value>, Box<dyn Error>> {
    let mut objects = Vec::new();
    for entry in fs::read_dir(folder)? {
        objects.extend(documents(&fs::read_to_string(entry?.path())?)?);
    }
    Ok(objects)
}
