//! What the writer thread remembers between commands: caches of rows it wrote.
//!
//! A cache must never hold what the database does not. So each is dropped when a command of the batch,
//! or the batch, was rolled back.

use std::any::{Any, TypeId};
use std::collections::HashMap;

/// Something that commands keep on the writer thread.
pub trait Remembered: Any + Send {
    /// A command or batch was rolled back: forget what may not be in the database.
    fn rolled_back(&mut self);
}

/// One of each kind of [`Remembered`], made at first use.
#[derive(Default)]
pub struct WriterState {
    kept: HashMap<TypeId, Box<dyn Remembered>>,
}

impl WriterState {
    /// The one `T` of this writer.
    pub fn of<T: Remembered + Default>(&mut self) -> &mut T {
        let kept = self.kept.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(T::default()));
        let kept: &mut dyn Any = kept.as_mut();
        kept.downcast_mut().expect("kept under its own type id")
    }

    pub(crate) fn rolled_back(&mut self) {
        for kept in self.kept.values_mut() {
            kept.rolled_back();
        }
    }
}
