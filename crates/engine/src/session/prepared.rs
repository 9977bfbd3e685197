//! Texts that a client prepared, by handle. Their plans are in the plan cache like any other; a handle that is executed again
//! keeps what its text has become.

use crate::batch::ready::ReadyCall;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Prepared texts a session may hold: a driver that forgets to unprepare gets 701, not all memory.
const TEXTS_MAX: usize = 100_000;

/// A prepared text and its parameter declarations.
#[derive(Debug, Clone)]
pub(crate) struct PreparedText {
    pub(crate) declarations: Arc<str>,
    pub(crate) text: Arc<str>,
}

/// The prepared texts of a session.
#[derive(Debug, Default)]
pub(crate) struct PreparedTexts {
    texts: BTreeMap<i32, (PreparedText, Option<Box<ReadyCall>>)>,
    last: i32,
}

impl PreparedTexts {
    /// Keeps a text; its handle. `None` if there are too many.
    pub(crate) fn add(&mut self, declarations: &str, text: &str) -> Option<i32> {
        if self.texts.len() >= TEXTS_MAX {
            return None;
        }
        self.last += 1;
        let text = PreparedText { declarations: Arc::from(declarations), text: Arc::from(text) };
        self.texts.insert(self.last, (text, None));
        Some(self.last)
    }

    pub(crate) fn get(&self, handle: i32) -> Option<PreparedText> {
        self.texts.get(&handle).map(|(text, _)| text.clone())
    }

    /// Takes out what the text of a handle has become.
    pub(crate) fn take_ready(&mut self, handle: i32) -> Option<Box<ReadyCall>> {
        self.texts.get_mut(&handle)?.1.take()
    }

    /// Keeps it for the next call; forgets it if the handle is no more.
    pub(crate) fn put_ready(&mut self, handle: i32, ready: Box<ReadyCall>) {
        if let Some((_, kept)) = self.texts.get_mut(&handle) {
            *kept = Some(ready);
        }
    }

    /// Forgets a text; false if there was none.
    pub(crate) fn remove(&mut self, handle: i32) -> bool {
        self.texts.remove(&handle).is_some()
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }
}
