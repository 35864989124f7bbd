//! Scans an object: indexes the metadata, skips the rest, and records dropped fields as cuts.

use super::{
    ScanError,
    cursor::{Cursor, ReadContainers, Token},
    index::{Field, Index, Owner, Text},
    transform::{NodeId, ROOT, Transform},
};

/// The most labels of an object. Each new label is compared with all earlier labels.
const MAX_LABELS: usize = 4_096;

/// Scans an object into an index.
pub(super) struct ObjectScan<'a, 'i> {
    pub(super) cursor: Cursor<'a>,
    pub(super) index: &'i mut Index,
    pub(super) transform: &'i Transform,
    pub(super) metadata_only: bool,
}

impl ObjectScan<'_, '_> {
    /// Scans the object at the cursor.
    pub(super) fn object(&mut self) -> Result<(), ScanError> {
        if self.cursor.peek()? != b'{' {
            return self.reject("the object", "an object");
        }
        let (mut api_version, mut kind) = (false, false);
        self.index.start = self.cursor.at as u32;
        self.members(|scan, key| {
            let name = scan.cursor.unescaped(key)?;
            match &*name {
                b"metadata" => {
                    scan.index.clear_metadata();
                    scan.index.metadata += 1;
                    let node = scan.transform.member(ROOT, b"metadata");
                    scan.metadata(node)?;
                    return Ok(true);
                }
                // The metadata of an object names `PartialObjectMetadata`, and not the kind.
                _ if scan.metadata_only => {
                    scan.cursor.skip_value()?;
                    return Ok(false);
                }
                b"apiVersion" => api_version = true,
                b"kind" => kind = true,
                name => return scan.unindexed(scan.transform.member(ROOT, name)),
            }
            scan.cursor.skip_value()?;
            Ok(true)
        })?;
        self.index.has_type = api_version || kind;
        self.index.end = self.cursor.at as u32;
        Ok(())
    }

    /// Reads the members of the object at the cursor. `member` reads a value and returns whether to keep the
    /// member. Other members are cut together with their commas.
    fn members(
        &mut self,
        mut member: impl FnMut(&mut Self, Token) -> Result<bool, ScanError>,
    ) -> Result<(), ScanError> {
        // The end of the last kept member: everything after this end is cut so far.
        let mut cut_from = self.cursor.at + 1;
        let (mut cutting, mut kept_any) = (false, false);
        self.each_member(|scan, key| {
            let cuts = scan.index.cuts.len();
            if member(scan, key)? {
                if cutting {
                    // The comma before this member is kept after an earlier kept member.
                    let start = key.start - 1;
                    let comma = if kept_any { scan.last_comma(cut_from, start) } else { start };
                    scan.index.cuts.insert(cuts, (cut_from as u32, comma as u32));
                }
                (cutting, kept_any) = (false, true);
                cut_from = scan.cursor.at;
            } else {
                scan.index.cuts.truncate(cuts);
                cutting = true;
            }
            Ok(())
        })?;
        if cutting {
            self.index.cuts.push((cut_from as u32, self.cursor.at as u32 - 1));
        }
        Ok(())
    }

    /// Returns the offset of the comma before the member at `start`.
    fn last_comma(&self, from: usize, start: usize) -> usize {
        let before = &self.cursor.bytes[from..start];
        from + before.iter().rposition(|&byte| byte == b',').unwrap_or(before.len())
    }

    /// Reads a value without an index, and applies the transform. Returns whether to keep the value.
    fn unindexed(&mut self, node: Option<NodeId>) -> Result<bool, ScanError> {
        let Some(node) = node else {
            self.cursor.skip_value()?;
            return Ok(true);
        };
        if self.transform.drops(node) {
            self.cursor.skip_value()?;
            return Ok(false);
        }
        match self.cursor.peek()? {
            b'{' => self.members(|scan, key| {
                let name = scan.cursor.unescaped(key)?;
                scan.unindexed(scan.transform.member(node, &name))
            })?,
            b'[' if let Some(inner) = self.transform.elements(node) => {
                self.each_element(|scan| scan.unindexed(Some(inner)).map(drop))?;
            }
            _ => self.cursor.skip_value()?,
        }
        Ok(true)
    }

    fn metadata(&mut self, node: Option<NodeId>) -> Result<(), ScanError> {
        if self.cursor.peek()? != b'{' {
            return self.not_an_object("metadata");
        }
        self.members(|scan, key| {
            let name = scan.cursor.unescaped(key)?;
            let inner = node.and_then(|node| scan.transform.member(node, &name));
            if inner.is_some_and(|inner| scan.transform.drops(inner)) {
                scan.cursor.skip_value()?;
                return Ok(false);
            }
            match &*name {
                b"uid" => scan.index.texts[Field::Uid as usize] = scan.text("metadata.uid")?,
                b"name" => scan.index.texts[Field::Name as usize] = scan.text("metadata.name")?,
                b"labels" => scan.labels()?,
                b"namespace" => {
                    scan.index.texts[Field::Namespace as usize] = scan.text("metadata.namespace")?;
                }
                b"generation" => {
                    scan.index.generation = scan.integer("metadata.generation")?;
                }
                b"finalizers" => scan.finalizers()?,
                b"annotations" => return scan.annotations(inner),
                b"resourceVersion" => {
                    scan.index.texts[Field::ResourceVersion as usize] =
                        scan.text("metadata.resourceVersion")?;
                }
                b"ownerReferences" => scan.owners()?,
                b"creationTimestamp" => {
                    scan.index.texts[Field::Creation as usize] = scan.text("metadata.creationTimestamp")?;
                }
                b"deletionTimestamp" => {
                    scan.index.texts[Field::Deletion as usize] = scan.text("metadata.deletionTimestamp")?;
                }
                _ => return scan.unindexed(inner),
            }
            Ok(true)
        })
    }

    fn annotations(&mut self, node: Option<NodeId>) -> Result<bool, ScanError> {
        self.index.annotations += 1;
        if self.cursor.peek()? != b'{' {
            return self.not_an_object("metadata.annotations").map(|()| true);
        }
        self.unindexed(node)
    }

    fn labels(&mut self) -> Result<(), ScanError> {
        self.index.labels.clear();
        if self.cursor.peek()? != b'{' {
            return self.not_an_object("metadata.labels");
        }
        self.members(|scan, key| {
            let key = scan.index.keep(scan.cursor.bytes, key)?;
            let value = scan.text("a label's value")?.unwrap_or_default();
            let (bytes, index) = (scan.cursor.bytes, &mut *scan.index);
            let same = |other: &(Text, Text)| {
                other.0.length == key.length && index.text(bytes, other.0) == index.text(bytes, key)
            };
            match index.labels.iter().position(same) {
                Some(earlier) => index.labels[earlier].1 = value,
                None if index.labels.len() >= MAX_LABELS => {
                    return Err(ScanError::field("metadata.labels", "more than 4,096 labels"));
                }
                None => index.labels.push((key, value)),
            }
            Ok(true)
        })
    }

    fn owners(&mut self) -> Result<(), ScanError> {
        self.index.owners.clear();
        if self.cursor.eat_null()? {
            return Ok(());
        }
        if self.cursor.peek()? != b'[' {
            return self.reject("metadata.ownerReferences", "an array");
        }
        self.each_element(|scan| {
            let mut owner = Owner::default();
            scan.owner(&mut owner)?;
            if scan.index.owners.len() >= usize::from(u16::MAX) {
                return Err(ScanError::field("metadata.ownerReferences", "shorter than 65,536 elements"));
            }
            scan.index.owners.push(owner);
            Ok(())
        })
    }

    fn owner(&mut self, owner: &mut Owner) -> Result<(), ScanError> {
        if self.cursor.peek()? != b'{' {
            return self.reject("an element of metadata.ownerReferences", "an object");
        }
        self.members(|scan, key| {
            let name = scan.cursor.unescaped(key)?;
            match &*name {
                b"apiVersion" => {
                    owner.api_version = scan.text("an ownerReference's apiVersion")?.unwrap_or_default();
                }
                b"kind" => owner.kind = scan.text("an ownerReference's kind")?.unwrap_or_default(),
                b"name" => owner.name = scan.text("an ownerReference's name")?.unwrap_or_default(),
                b"uid" => owner.uid = scan.text("an ownerReference's uid")?.unwrap_or_default(),
                b"controller" => {
                    owner.controller = scan.boolean("an ownerReference's controller")?;
                }
                b"blockOwnerDeletion" => {
                    owner.block_owner_deletion = scan.boolean("an ownerReference's blockOwnerDeletion")?;
                }
                _ => scan.cursor.skip_value()?,
            }
            Ok(true)
        })
    }

    fn finalizers(&mut self) -> Result<(), ScanError> {
        self.index.finalizers.clear();
        if self.cursor.eat_null()? {
            return Ok(());
        }
        if self.cursor.peek()? != b'[' {
            return self.reject("metadata.finalizers", "an array");
        }
        self.each_element(|scan| {
            let finalizer = scan.text("a finalizer")?.unwrap_or_default();
            if scan.index.finalizers.len() >= usize::from(u16::MAX) {
                return Err(ScanError::field("metadata.finalizers", "shorter than 65,536 elements"));
            }
            scan.index.finalizers.push(finalizer);
            Ok(())
        })
    }

    /// Reads a string or null.
    #[inline]
    pub(super) fn text(&mut self, field: &'static str) -> Result<Option<Text>, ScanError> {
        match self.cursor.peek()? {
            b'"' => {
                let token = self.cursor.string("a string")?;
                self.index.keep(self.cursor.bytes, token).map(Some)
            }
            b'n' => self.cursor.literal(b"null").map(|()| None),
            _ => self.reject(field, "a string").map(|()| None),
        }
    }

    /// Reads an integer or null. Null counts as zero.
    fn integer(&mut self, field: &'static str) -> Result<i64, ScanError> {
        if self.cursor.eat_null()? {
            return Ok(0);
        }
        if !matches!(self.cursor.peek()?, b'-' | b'0'..=b'9') {
            return self.reject(field, "an integer").map(|()| 0);
        }
        let digits = self.cursor.number()?;
        integer(digits).ok_or(ScanError::field(field, "a 64-bit integer"))
    }

    /// Reads a boolean or null. Null counts as false.
    fn boolean(&mut self, field: &'static str) -> Result<bool, ScanError> {
        match self.cursor.peek()? {
            b't' => self.cursor.literal(b"true").map(|()| true),
            b'f' => self.cursor.literal(b"false").map(|()| false),
            b'n' => self.cursor.literal(b"null").map(|()| false),
            _ => self.reject(field, "a boolean").map(|()| false),
        }
    }

    fn not_an_object(&mut self, field: &'static str) -> Result<(), ScanError> {
        if self.cursor.eat_null()? { Ok(()) } else { self.reject(field, "an object") }
    }

    /// Rejects a value of another type, after a check that the value is complete JSON.
    fn reject(&mut self, field: &'static str, expected: &'static str) -> Result<(), ScanError> {
        self.cursor.skip_value()?;
        Err(ScanError::Field { field, expected })
    }
}

impl<'a> ReadContainers<'a> for ObjectScan<'a, '_> {
    #[inline(always)]
    fn cursor(&mut self) -> &mut Cursor<'a> {
        &mut self.cursor
    }
}

/// Returns an integer. JSON has a negative zero, integers have not.
fn integer(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok().filter(|digits| *digits != "-0")?.parse().ok()
}
