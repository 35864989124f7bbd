//! The built-in kinds: resources, and schemas of types.
//!
//! `cargo xtask codegen` packs the data of `catalog/` into one compressed blob. This module unpacks the blob once,
//! reads the lists of resources, and decodes each type on first use.

mod bits;
mod decode;
mod kubernetes_version;
mod reader;

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, LazyLock};

use crate::graph::{NamedNodes, Schema};
use decode::TypeTable;
pub use kubernetes_version::{KubernetesVersion, UnknownKubernetesVersion};
use reader::Reader;

/// The catalog of the newest version.
static BUILTIN: LazyLock<Arc<Catalog>> = LazyLock::new(|| unpacked(include_bytes!("catalog/builtin.bin")));

/// The catalog of Kubernetes 1.36.
static V1_36: LazyLock<Arc<Catalog>> = LazyLock::new(|| unpacked(include_bytes!("catalog/builtin-1.36.bin")));

fn unpacked(blob: &[u8]) -> Arc<Catalog> {
    Arc::new(Catalog::unpack(blob).expect("the blob is what `cargo xtask codegen` wrote"))
}

/// Group, version and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gvk {
    /// The API group; empty for the core group.
    pub group: Box<str>,
    /// The version in the group.
    pub version: Box<str>,
    /// The kind, in CamelCase.
    pub kind: Box<str>,
}

impl Gvk {
    /// Creates a group-version-kind; `group` is empty for the core group.
    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// Returns the `apiVersion`: `group/version`, or `version` alone for the core group.
    pub fn api_version(&self) -> String {
        match &*self.group {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// A version of an API group, with resources.
#[derive(Clone, Debug)]
pub struct GroupVersion {
    /// The group; empty for the core group.
    pub group: Box<str>,
    /// The version.
    pub version: Box<str>,
    /// The resources, sorted by name.
    pub resources: Vec<Resource>,
}

/// A resource: a collection of objects under a path.
#[derive(Clone, Debug, Default)]
pub struct Resource {
    /// The plural in lower case, as in request paths.
    pub name: Box<str>,
    /// The singular, in lower case.
    pub singular: Box<str>,
    /// The kind of the objects.
    pub kind: Gvk,
    /// True if the resource is namespaced; otherwise it is cluster-scoped.
    pub namespaced: bool,
    /// The supported verbs (`create`, `get`, …).
    pub verbs: Vec<Box<str>>,
    /// Short names for the command line (`po`).
    pub short_names: Vec<Box<str>>,
    /// Categories that name several resources at once on the command line (`all`).
    pub categories: Vec<Box<str>>,
    /// The subresources of each object.
    pub subresources: Vec<Subresource>,
}

impl Resource {
    /// Returns the subresource with this name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| &*subresource.name == name)
    }
}

/// A subresource of a resource: `status`, `scale`, `eviction`.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// The last segment of the path.
    pub name: Box<str>,
    /// The kind of the request and response bodies.
    pub kind: Gvk,
    /// The supported verbs.
    pub verbs: Vec<Box<str>>,
}

/// All built-in groups, versions, kinds and resources, with schemas.
///
/// ```
/// let catalog = windlass_schema::Catalog::builtin();
/// let pods = catalog.resource("", "v1", "pods").unwrap();
/// assert_eq!(&*pods.kind.kind, "Pod");
/// assert!(pods.namespaced);
/// let schema = catalog.schema("apps", "v1", "Deployment").unwrap();
/// assert!(schema.root().property("spec").unwrap().property("replicas").is_some());
/// ```
pub struct Catalog {
    version: Box<str>,
    group_versions: Vec<GroupVersion>,
    kinds: BTreeMap<Gvk, u32>,
    types: Arc<TypeTable>,
}

impl Catalog {
    /// Returns the catalog of the newest version, [`KubernetesVersion::default`]. The first call unpacks the catalog, which
    /// takes about a millisecond.
    pub fn builtin() -> Arc<Self> {
        Arc::clone(&BUILTIN)
    }

    /// Returns the catalog of a version. The first call for a version unpacks the catalog.
    pub fn of(version: KubernetesVersion) -> Arc<Self> {
        match version {
            KubernetesVersion::V1_36 => Arc::clone(&V1_36),
            KubernetesVersion::V1_37 => Self::builtin(),
        }
    }

    fn unpack(blob: &[u8]) -> Option<Self> {
        let mut raw = Vec::new();
        flate2::read::DeflateDecoder::new(blob).read_to_end(&mut raw).ok()?;
        let mut reader = Reader::open(raw.into())?;
        let version = reader.text()?.into();
        let types = TypeTable::read(&mut reader)?;
        let kinds = kinds(&mut reader)?;
        let group_versions = group_versions(&mut reader)?;
        Some(Self { version, group_versions, kinds, types: Arc::new(types) })
    }

    /// Returns the Kubernetes version that the catalog describes, such as `1.37.2`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the version of Kubernetes without its patch release: `1.37`.
    pub fn minor_version(&self) -> &str {
        self.version.rsplit_once('.').map_or(&*self.version, |(minor, _)| minor)
    }

    /// Returns the group-versions in the order of a server's discovery; the first version of a group is preferred.
    pub fn group_versions(&self) -> &[GroupVersion] {
        &self.group_versions
    }

    /// Returns a group-version.
    pub fn group_version(&self, group: &str, version: &str) -> Option<&GroupVersion> {
        self.group_versions.iter().find(|gv| &*gv.group == group && &*gv.version == version)
    }

    /// Returns a resource by its plural.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Resource> {
        self.group_version(group, version)?.resources.iter().find(|resource| &*resource.name == plural)
    }

    /// Returns the schema of a kind, including kinds without a resource (`DeleteOptions`, `Scale`, `Status`).
    pub fn schema(&self, group: &str, version: &str, kind: &str) -> Option<Schema> {
        let index = *self.kinds.get(&Gvk::new(group, version, kind))?;
        Some(self.schema_of(index))
    }

    /// Returns the schema of a type by its OpenAPI name (`io.k8s.api.core.v1.PodSpec`).
    pub fn definition(&self, name: &str) -> Option<Schema> {
        self.types.position(name).map(|index| self.schema_of(index))
    }

    /// Returns all kinds that have a schema, sorted.
    pub fn kinds(&self) -> impl Iterator<Item = &Gvk> {
        self.kinds.keys()
    }

    /// Returns the kinds that a definition describes.
    pub(crate) fn kinds_of(&self, definition: &str) -> impl Iterator<Item = &Gvk> {
        let wanted = self.types.position(definition);
        self.kinds.iter().filter(move |(_, index)| Some(**index) == wanted).map(|(kind, _)| kind)
    }

    fn schema_of(&self, index: u32) -> Schema {
        Schema::named(Arc::clone(&self.types) as Arc<dyn NamedNodes>, index)
    }
}

/// Returns the schema of `ObjectMeta`.
pub(crate) fn object_meta() -> Schema {
    let definition = BUILTIN.definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    definition.unwrap_or_else(Schema::unconstrained)
}

fn kinds(reader: &mut Reader) -> Option<BTreeMap<Gvk, u32>> {
    (0..reader.number()?)
        .map(|_| {
            let kind = Gvk {
                group: reader.text()?.into(),
                version: reader.text()?.into(),
                kind: reader.text()?.into(),
            };
            Some((kind, reader.number()?))
        })
        .collect()
}

fn group_versions(reader: &mut Reader) -> Option<Vec<GroupVersion>> {
    (0..reader.number()?)
        .map(|_| {
            let (group, version) = (reader.text()?.into(), reader.text()?.into());
            Some(GroupVersion { group, version, resources: resources(reader)? })
        })
        .collect()
}

/// Resources are sorted, and a subresource (`pods/status`) follows its resource.
fn resources(reader: &mut Reader) -> Option<Vec<Resource>> {
    let mut out: Vec<Resource> = Vec::new();
    for _ in 0..reader.number()? {
        let resource = resource(reader)?;
        let Some((parent, name)) = resource.name.split_once('/') else {
            out.push(resource);
            continue;
        };
        let subresource =
            Subresource { name: name.into(), kind: resource.kind.clone(), verbs: resource.verbs };
        out.iter_mut().find(|resource| &*resource.name == parent)?.subresources.push(subresource);
    }
    Some(out)
}

fn resource(reader: &mut Reader) -> Option<Resource> {
    let (name, singular) = (reader.text()?.into(), reader.text()?.into());
    let kind: Box<str> = reader.text()?.into();
    let (group, version) = (reader.text()?.into(), reader.text()?.into());
    Some(Resource {
        name,
        singular,
        kind: Gvk { group, version, kind },
        namespaced: reader.number()? == 1,
        verbs: reader.texts()?,
        short_names: reader.texts()?,
        categories: reader.texts()?,
        subresources: Vec::new(),
    })
}

#[cfg(test)]
mod tests;
