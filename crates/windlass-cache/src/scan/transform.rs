//! Transforms: fields that the scan drops before these fields cost memory.

use std::fmt;

use super::cursor::Cursor;

/// The path of a field: `spec.template`, `spec.containers[*].env`, `metadata.annotations['example.com/big']`.
///
/// A segment names a member, `*` names every member, and `[*]` names every element of an array.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath {
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Segment {
    Member(Box<str>),
    AnyMember,
    Elements,
}

/// A field path cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid field path `{path}`: {reason}")]
pub struct FieldPathError {
    path: String,
    reason: &'static str,
}

impl std::str::FromStr for FieldPath {
    type Err = FieldPathError;

    fn from_str(path: &str) -> Result<Self, FieldPathError> {
        let error = |reason| FieldPathError { path: path.to_owned(), reason };
        let mut segments = Vec::new();
        let mut rest = path.strip_prefix('.').unwrap_or(path);
        while !rest.is_empty() {
            if let Some(bracket) = rest.strip_prefix('[') {
                let (segment, behind) = bracketed(bracket).map_err(error)?;
                segments.push(segment);
                rest = behind;
            } else {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                match &rest[..end] {
                    "" => return Err(error("a member name is empty")),
                    "*" => segments.push(Segment::AnyMember),
                    name => segments.push(Segment::Member(name.into())),
                }
                rest = &rest[end..];
            }
            if let Some(behind) = rest.strip_prefix('.') {
                if behind.is_empty() {
                    return Err(error("the path ends with a dot"));
                }
                rest = behind;
            }
        }
        if segments.is_empty() {
            return Err(error("the path is empty"));
        }
        Ok(Self { segments })
    }
}

/// Parses `*]` or `'name']`; returns the segment and the rest.
fn bracketed(text: &str) -> Result<(Segment, &str), &'static str> {
    if let Some(behind) = text.strip_prefix("*]") {
        return Ok((Segment::Elements, behind));
    }
    for quote in ["'", "\""] {
        if let Some((name, behind)) = text.strip_prefix(quote).and_then(|text| text.split_once(quote)) {
            let behind = behind.strip_prefix(']').ok_or("expected `]` after a quoted name")?;
            return Ok((Segment::Member(name.into()), behind));
        }
    }
    Err("expected `*` or a quoted name in brackets")
}

impl FieldPath {
    /// Returns the path `metadata.managedFields`.
    pub(crate) fn managed_fields() -> Self {
        Self { segments: ["metadata", "managedFields"].map(|name| Segment::Member(name.into())).to_vec() }
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

impl FieldPath {
    /// Returns the values at the path. Numbers and booleans are returned as JSON text.
    pub(crate) fn values(&self, json: &[u8]) -> Vec<String> {
        let mut values = Vec::new();
        // Invalid JSON has no values. A decode reports it.
        let _ = super::path::collect(&mut Cursor::new(json), &self.segments, &mut values);
        values
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, segment) in self.segments.iter().enumerate() {
            let dot = if number == 0 { "" } else { "." };
            match segment {
                Segment::Member(name) if name.contains(['.', '[', '\'']) => write!(f, "['{name}']")?,
                Segment::Member(name) => write!(f, "{dot}{name}")?,
                Segment::AnyMember => write!(f, "{dot}*")?,
                Segment::Elements => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

/// Paths of the fields to drop, compiled into a tree for the scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transform {
    nodes: Vec<Node>,
    paths: Vec<FieldPath>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    members: Vec<(Box<str>, NodeId)>,
    any_member: Option<NodeId>,
    elements: Option<NodeId>,
    drop: bool,
}

/// A node of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(u16);

pub(super) const ROOT: NodeId = NodeId(0);

/// A transform is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransformError {
    /// The cache needs the field.
    #[error("`{0}` cannot be dropped: the cache needs the object's name, namespace, uid and resourceVersion")]
    Needed(FieldPath),
    /// The path names elements of an array.
    #[error("`{0}` names the elements of an array; only members can be dropped")]
    Elements(FieldPath),
    /// There are too many paths.
    #[error("a transform has at most 65,000 path segments")]
    TooMany,
}

impl Transform {
    /// Compiles the paths of the fields to drop.
    ///
    /// # Errors
    /// The cache needs a given field, or a path names elements of an array, or there are too many paths.
    pub fn drop_fields(paths: impl IntoIterator<Item = FieldPath>) -> Result<Self, TransformError> {
        let mut transform = Self { nodes: vec![Node::default()], paths: paths.into_iter().collect() };
        transform.paths.sort();
        transform.paths.dedup();
        for path in transform.paths.clone() {
            transform.insert(&path)?;
        }
        transform.spread_any(0)?;
        Ok(transform)
    }

    /// Applies the paths through `*` to the named members, too.
    fn spread_any(&mut self, node: usize) -> Result<(), TransformError> {
        let named: Vec<_> = self.nodes[node].members.iter().map(|(_, id)| usize::from(id.0)).collect();
        let any = self.nodes[node].any_member.map(|id| usize::from(id.0));
        for &child in &named {
            if let Some(any) = any {
                self.merge(any, child)?;
            }
            self.spread_any(child)?;
        }
        let elements = self.nodes[node].elements.map(|id| usize::from(id.0));
        any.into_iter().chain(elements).try_for_each(|child| self.spread_any(child))
    }

    /// Adds the paths at `from` to the paths at `to`.
    fn merge(&mut self, from: usize, to: usize) -> Result<(), TransformError> {
        self.nodes[to].drop |= self.nodes[from].drop;
        let Node { members, any_member, elements, .. } = self.nodes[from].clone();
        let members = members.into_iter().map(|(name, id)| (Segment::Member(name), id));
        let any = any_member.map(|id| (Segment::AnyMember, id));
        let elements = elements.map(|id| (Segment::Elements, id));
        for (segment, id) in members.chain(any).chain(elements) {
            let child = self.child(to, &segment)?;
            self.merge(usize::from(id.0), child)?;
        }
        Ok(())
    }

    /// Returns a transform that drops nothing.
    pub(crate) fn nothing() -> Self {
        Self { nodes: vec![Node::default()], paths: Vec::new() }
    }

    /// Returns the paths, sorted.
    pub fn paths(&self) -> &[FieldPath] {
        &self.paths
    }

    fn insert(&mut self, path: &FieldPath) -> Result<(), TransformError> {
        const NEEDED: [&str; 4] = ["name", "namespace", "uid", "resourceVersion"];
        let needed = match path.segments() {
            [Segment::Member(first)] => &**first == "metadata",
            [Segment::AnyMember, ..] => true,
            [Segment::Member(first), Segment::Member(second)] => {
                &**first == "metadata" && NEEDED.contains(&&**second)
            }
            [Segment::Member(first), Segment::AnyMember, ..] => &**first == "metadata",
            _ => false,
        };
        if needed {
            return Err(TransformError::Needed(path.clone()));
        }
        if path.segments().last() == Some(&Segment::Elements) {
            return Err(TransformError::Elements(path.clone()));
        }
        let mut node = 0;
        for segment in path.segments() {
            node = self.child(node, segment)?;
        }
        self.nodes[node].drop = true;
        Ok(())
    }

    fn child(&mut self, parent: usize, segment: &Segment) -> Result<usize, TransformError> {
        let node = &self.nodes[parent];
        let known = match segment {
            Segment::Member(name) => node.members.iter().find(|(key, _)| key == name).map(|(_, id)| *id),
            Segment::AnyMember => node.any_member,
            Segment::Elements => node.elements,
        };
        if let Some(id) = known {
            return Ok(id.0.into());
        }
        let id = NodeId(u16::try_from(self.nodes.len()).map_err(|_| TransformError::TooMany)?);
        self.nodes.push(Node::default());
        let node = &mut self.nodes[parent];
        match segment {
            Segment::Member(name) => node.members.push((name.clone(), id)),
            Segment::AnyMember => node.any_member = Some(id),
            Segment::Elements => node.elements = Some(id),
        }
        Ok(id.0.into())
    }

    /// Returns the node of a member of the object at `node`.
    #[inline]
    pub(super) fn member(&self, node: NodeId, name: &[u8]) -> Option<NodeId> {
        let node = &self.nodes[usize::from(node.0)];
        let named = node.members.iter().find(|(key, _)| key.as_bytes() == name).map(|(_, id)| *id);
        named.or(node.any_member)
    }

    /// Returns the node of the elements of the array at `node`.
    pub(super) fn elements(&self, node: NodeId) -> Option<NodeId> {
        self.nodes[usize::from(node.0)].elements
    }

    /// Returns whether the field at `node` is dropped.
    pub(super) fn drops(&self, node: NodeId) -> bool {
        self.nodes[usize::from(node.0)].drop
    }
}
