//! Reads the annotations of an object.

use super::{
    ScanError,
    cursor::{Cursor, ReadContainers, Token},
};

/// The annotations of an object whose values are strings. Invalid JSON ends a read early: a decode of the object reports the error.
pub(crate) struct Annotations<'a> {
    pub(crate) json: &'a [u8],
    /// True if the object has more than one member `metadata` or `annotations`, of which the last counts. A read of other objects ends
    /// with the annotations.
    pub(crate) are_repeated: bool,
}

impl Annotations<'_> {
    /// Returns all annotations in the order of the JSON.
    pub(crate) fn all(&self) -> Vec<(String, String)> {
        let mut annotations = Vec::new();
        let mut cursor = Cursor::new(self.json);
        let _ = if self.are_repeated {
            each(&mut cursor, b"metadata", |metadata| {
                annotations.clear();
                each(metadata, b"annotations", |cursor| {
                    annotations.clear();
                    read(cursor, &mut annotations)
                })
            })
        } else {
            find_annotations(&mut cursor)
                .and_then(|is_found| if is_found { read(&mut cursor, &mut annotations) } else { Ok(()) })
        };
        annotations
    }

    /// Returns the value of an annotation.
    pub(crate) fn value(&self, key: &str) -> Option<String> {
        if self.are_repeated {
            return self.all().into_iter().rev().find(|(name, _)| name == key).map(|(_, value)| value);
        }
        let mut cursor = Cursor::new(self.json);
        if !find_annotations(&mut cursor).ok()? {
            return None;
        }
        let mut found = None;
        let _ = each_string(&mut cursor, |cursor, name, value| {
            if *cursor.unescaped(name)? == *key.as_bytes() {
                found = Some(text(cursor, value)?);
            }
            Ok(())
        });
        found
    }
}

fn read(cursor: &mut Cursor<'_>, annotations: &mut Vec<(String, String)>) -> Result<(), ScanError> {
    each_string(cursor, |cursor, key, value| {
        annotations.push((text(cursor, key)?, text(cursor, value)?));
        Ok(())
    })
}

/// Moves to the annotations of the object at the cursor. Returns false if the object has none.
fn find_annotations(cursor: &mut Cursor<'_>) -> Result<bool, ScanError> {
    Ok(find(cursor, b"metadata")? && find(cursor, b"annotations")?)
}

/// Moves to the value of the first member with a name in the object at the cursor. Returns false if there is none.
fn find(cursor: &mut Cursor<'_>, name: &[u8]) -> Result<bool, ScanError> {
    cursor.expect(b'{', "`{`")?;
    if cursor.eat(b'}')? {
        return Ok(false);
    }
    loop {
        let key = cursor.key()?;
        if *cursor.unescaped(key)? == *name {
            return Ok(true);
        }
        cursor.skip_value()?;
        if cursor.eat(b'}')? {
            return Ok(false);
        }
        cursor.expect(b',', "`,` or `}`")?;
    }
}

/// Reads an object. `read` reads each member with a name.
fn each<'a>(
    cursor: &mut Cursor<'a>,
    name: &[u8],
    mut read: impl FnMut(&mut Cursor<'a>) -> Result<(), ScanError>,
) -> Result<(), ScanError> {
    cursor.each_member(
        |cursor, key| {
            if *cursor.unescaped(key)? == *name { read(cursor) } else { cursor.skip_value() }
        },
    )
}

/// Reads an object. `read` gets the names and values of the members whose values are strings.
fn each_string<'a>(
    cursor: &mut Cursor<'a>,
    mut read: impl FnMut(&Cursor<'a>, Token, Token) -> Result<(), ScanError>,
) -> Result<(), ScanError> {
    if cursor.peek()? != b'{' {
        return cursor.skip_value();
    }
    cursor.each_member(|cursor, key| {
        if cursor.peek()? != b'"' {
            return cursor.skip_value();
        }
        let value = cursor.string("a string")?;
        read(cursor, key, value)
    })
}

fn text(cursor: &Cursor<'_>, token: Token) -> Result<String, ScanError> {
    Ok(String::from_utf8_lossy(&cursor.unescaped(token)?).into_owned())
}
