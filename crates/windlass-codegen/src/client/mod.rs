//! The clients of a project's kinds, in the style of Go's code-generator.
//!
//! [`generate`] makes the modules of an [`Api`]: `clientset`, `informers`, `listers`, `applyconfiguration`
//! and `register`. The modules use the crate `windlass-client`, and are therefore short and readable.

mod api;
mod applyconfiguration;
mod clientset;
mod informers;
mod listers;
mod register;
mod render;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::Write as _;

pub use self::api::{Api, GroupVersion, Kind, ONLY_VERBS, SKIP_VERBS, Verb};
use self::render::Render;
use crate::SourceFile;
pub use crate::groups::{group_module, group_modules};

/// A module of the generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generator {
    /// `applyconfiguration`: functions that begin an apply configuration.
    ApplyConfiguration,
    /// `clientset`: a typed client for each kind.
    Clientset,
    /// `informers`: the shared informer factory. Needs `listers` and `register`.
    Informers,
    /// `listers`: typed reads from caches.
    Listers,
    /// `register`: kinds and resources, and the mapping between kinds and resources.
    Register,
}

/// The place of the generated modules, and the paths in the generated code.
#[derive(Clone, Debug)]
pub struct Target {
    /// The path of the module that holds the pieces, for code in the same crate: `crate::client`.
    pub module: String,
    /// The path of the crate `windlass-client`.
    pub support: String,
    /// The path of the module for code in other crates, such as `network_api::client`. Examples in the
    /// documentation use this path.
    pub public: String,
    /// A second line of each file, in a comment.
    pub note: Option<String>,
}

impl Generator {
    /// All pieces, sorted by name.
    pub const ALL: [Self; 5] =
        [Self::ApplyConfiguration, Self::Clientset, Self::Informers, Self::Listers, Self::Register];

    /// Returns the name of the module.
    pub fn module(self) -> &'static str {
        match self {
            Self::ApplyConfiguration => "applyconfiguration",
            Self::Clientset => "clientset",
            Self::Informers => "informers",
            Self::Listers => "listers",
            Self::Register => "register",
        }
    }

    /// Returns this piece and the pieces that the generated code of this piece uses.
    pub fn with_needed(self) -> &'static [Self] {
        match self {
            Self::Informers => &[Self::Informers, Self::Listers, Self::Register],
            Self::ApplyConfiguration => &[Self::ApplyConfiguration],
            Self::Clientset => &[Self::Clientset],
            Self::Listers => &[Self::Listers],
            Self::Register => &[Self::Register],
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::ApplyConfiguration => "Configurations for server-side apply",
            Self::Clientset => "A typed client for each kind",
            Self::Informers => "Caches with event handlers for each kind",
            Self::Listers => "Typed reads from caches",
            Self::Register => "The kinds and resources",
        }
    }
}

/// Generates some pieces. The same input gives the same files, sorted by path.
///
/// `existing` names the pieces of an earlier run that stay. The root module declares these pieces, too.
pub fn generate(
    api: &Api,
    target: &Target,
    pieces: &BTreeSet<Generator>,
    existing: &BTreeSet<Generator>,
) -> Vec<SourceFile> {
    let (render, cached) = (Render::new(api, target), api.cached());
    let cached = Render::new(&cached, target);
    let pieces: BTreeSet<Generator> = pieces.iter().flat_map(|piece| piece.with_needed()).copied().collect();
    let declared: BTreeSet<Generator> = pieces.union(existing).copied().collect();
    let mut files = vec![root(&render, &declared)];
    for piece in pieces {
        match piece {
            Generator::ApplyConfiguration => applyconfiguration::render(&render, &mut files),
            Generator::Clientset => clientset::render(&render, &mut files),
            Generator::Informers => informers::render(&cached, &mut files),
            Generator::Listers => listers::render(&cached, &mut files),
            Generator::Register => files.push(register::render(&render)),
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// Returns the module that declares the pieces.
fn root(render: &Render<'_>, pieces: &BTreeSet<Generator>) -> SourceFile {
    let mut text = "//! Clientset, informers and listers, made by `windlass generate`.\n\n".to_owned();
    for piece in pieces {
        let _ = write!(text, "/// {}.\n#[rustfmt::skip]\npub mod {};\n", piece.about(), piece.module());
    }
    render.file("mod.rs", &text)
}
