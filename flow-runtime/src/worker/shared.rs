//! What the workers of one attempt share: they all run the same wiring, and meet here by operator.

use std::{
    any::Any,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// Values by kind and index, made by whoever asks first.
#[derive(Default)]
pub(crate) struct Shared(Mutex<HashMap<(&'static str, usize), Value>>);

type Value = Arc<dyn Any + Send + Sync>;

impl Shared {
    pub(crate) fn get<T: Send + Sync + 'static>(
        &self,
        kind: &'static str,
        index: usize,
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let value = values.entry((kind, index)).or_insert_with(|| Arc::new(make()));
        match Arc::clone(value).downcast() {
            Ok(value) => value,
            Err(_) => unreachable!("each kind has one type"),
        }
    }
}
