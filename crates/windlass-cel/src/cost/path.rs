//! Paths of fields in estimates.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A path of fields from a variable, such as `self`, `spec`, `@items`.
///
/// A path shares its memory with the paths that were made of the path, as slices do in Go: appending twice to
/// one path changes the first result. Estimates of kube-apiserver depend on this.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    cells: Rc<RefCell<Vec<Arc<str>>>>,
    length: usize,
    capacity: usize,
}

impl Path {
    /// Returns a path with one name.
    pub(super) fn of(name: &str) -> Self {
        Self { cells: Rc::new(RefCell::new(vec![name.into()])), length: 1, capacity: 1 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the path with a name more.
    pub(super) fn append(&self, name: &str) -> Self {
        if self.length < self.capacity {
            let mut cells = self.cells.borrow_mut();
            if self.length < cells.len() {
                cells[self.length] = name.into();
            } else {
                cells.push(name.into());
            }
            drop(cells);
            return Self { length: self.length + 1, ..self.clone() };
        }
        let mut names = self.names();
        names.push(name.into());
        let capacity = (self.capacity * 2).max(1);
        Self { cells: Rc::new(RefCell::new(names)), length: self.length + 1, capacity }
    }

    /// Returns a copy that shares no memory, with a name more.
    pub(super) fn copied(&self, name: &str) -> Self {
        let mut names = self.names();
        names.push(name.into());
        let length = names.len();
        Self { cells: Rc::new(RefCell::new(names)), length, capacity: length }
    }

    pub(super) fn names(&self) -> Vec<Arc<str>> {
        self.cells.borrow()[..self.length].to_vec()
    }
}
