//! The built-in kinds: which resources there are, and the schemas of their types.
//!
//! The facts are data. `cargo xtask codegen` packs them into one compressed blob; here it is unpacked once, the
//! lists of resources are read, and each type is decoded when it is first asked for.

mod decode;
mod reader;

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, LazyLock};

use crate::graph::{Definitions, Schema};
use decode::TypeTable;
use reader::Reader;

static BLOB: &[u8] = include_bytes!("catalog/builtin.bin");

/// A constant: what the blob says, unpacked by whoever asks first.
static BUILTIN: LazyLock<Arc<Catalog>> =
    LazyLock::new(|| Arc::new(Catalog::unpack(BLOB).expect("the blob is what `cargo xtask codegen` wrote")));

/// Group, version and kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gvk {
    /// The API group; empty for the core group.
    pub group: Box<str>,
    /// The version in the group.
    pub version: Box<str>,
    /// The kind, in CamelCase.
    pub kind: Box<str>,
}

impl Gvk {
    /// From its parts.
    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// `group/version`, or `version` alone in the core group.
    pub fn api_version(&self) -> String {
        match &*self.group {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// A version of an API group with its resources.
#[derive(Clone, Debug)]
pub struct GroupVersion {
    /// The group; empty for the core group.
    pub group: Box<str>,
    /// The version.
    pub version: Box<str>,
    /// Its resources, by name in order.
    pub resources: Vec<Resource>,
}

/// A resource: a collection of objects under one path.
#[derive(Clone, Debug)]
pub struct Resource {
    /// The plural, as it stands in paths.
    pub name: Box<str>,
    /// The singular, in lower case.
    pub singular: Box<str>,
    /// What its objects are.
    pub kind: Gvk,
    /// Whether objects lie in namespaces.
    pub namespaced: bool,
    /// What may be done (`create`, `get`, …).
    pub verbs: Vec<Box<str>>,
    /// Names for people in a hurry (`po`).
    pub short_names: Vec<Box<str>>,
    /// Groups of resources for people (`all`).
    pub categories: Vec<Box<str>>,
    /// What lies below each object.
    pub subresources: Vec<Subresource>,
}

impl Resource {
    /// The subresource of a name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| &*subresource.name == name)
    }
}

/// Something that lies below an object: `status`, `scale`, `eviction`.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// The last part of its path.
    pub name: Box<str>,
    /// What it speaks.
    pub kind: Gvk,
    /// What may be done.
    pub verbs: Vec<Box<str>>,
}

/// All built-in groups, versions, kinds and resources with their schemas.
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
    /// The catalog that this crate was built with. It is unpacked once in a process (about a millisecond).
    pub fn builtin() -> Arc<Self> {
        Arc::clone(&BUILTIN)
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

    /// The Kubernetes version that the facts are of, as `1.36.3`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The group-versions in the order in which a server lists them; the first of a group is preferred.
    pub fn group_versions(&self) -> &[GroupVersion] {
        &self.group_versions
    }

    /// One group-version.
    pub fn group_version(&self, group: &str, version: &str) -> Option<&GroupVersion> {
        self.group_versions.iter().find(|gv| &*gv.group == group && &*gv.version == version)
    }

    /// One resource, by its plural.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Resource> {
        self.group_version(group, version)?.resources.iter().find(|resource| &*resource.name == plural)
    }

    /// The schema of a kind. Kinds without a resource of their own (`DeleteOptions`, `Scale`, `Status`) have one
    /// too.
    pub fn schema(&self, group: &str, version: &str, kind: &str) -> Option<Schema> {
        let index = *self.kinds.get(&Gvk::new(group, version, kind))?;
        Some(self.schema_of(index))
    }

    /// The schema of a type by the name it has in OpenAPI (`io.k8s.api.core.v1.PodSpec`).
    pub fn definition(&self, name: &str) -> Option<Schema> {
        self.types.position(name).map(|index| self.schema_of(index))
    }

    /// The kinds that have a schema.
    pub fn kinds(&self) -> impl Iterator<Item = &Gvk> {
        self.kinds.keys()
    }

    /// The kinds that a definition is.
    pub(crate) fn kinds_of(&self, definition: &str) -> impl Iterator<Item = &Gvk> {
        let wanted = self.types.position(definition);
        self.kinds.iter().filter(move |(_, index)| Some(**index) == wanted).map(|(kind, _)| kind)
    }

    fn schema_of(&self, index: u32) -> Schema {
        Schema::named(Arc::clone(&self.types) as Arc<dyn Definitions>, index)
    }
}

/// What every object has in `metadata`.
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

/// Resources come sorted, a subresource (`pods/status`) after its resource.
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
