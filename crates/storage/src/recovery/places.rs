//! Where the files of a database are that is opened by its primary file. The boot page says where they were made; the database may
//! have been moved or copied since, and of a copy nothing of the original's is to be touched.
//!
//! | the primary file is | another file is looked for |
//! |---|---|
//! | where it was made | where it was made, or beside the primary file |
//! | elsewhere | beside it, or as far from it as it was made; where it was made only if no primary file is left there |

use crate::space::layout::BOOT;
use crate::store::boot::BootFacts;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use thawdb_device::Env;

/// Files of an open database that are not where the boot page has them: it has what is true with its next change.
#[derive(Default)]
pub(crate) struct Relocated(OnceLock<BTreeMap<PathBuf, PathBuf>>);

impl Relocated {
    pub(super) fn fill(&self, places: &Places<'_>, facts: &BootFacts) {
        let paths = facts.files.iter().map(|(_, spec)| (spec.path.clone(), places.find(&spec.path)));
        self.0.get_or_init(|| paths.filter(|(made, found)| made != found).collect());
    }

    /// Puts the paths of the files as they are found in place of those they were made with.
    pub(crate) fn apply(&self, facts: &mut BootFacts) {
        let Some(found) = self.0.get() else { return };
        for (_, spec) in &mut facts.files {
            if let Some(path) = found.get(&spec.path) {
                spec.path.clone_from(path);
            }
        }
    }
}

pub(super) struct Places<'a> {
    env: &'a Env,
    /// Where the primary file was made.
    made: &'a Path,
    /// Where it is.
    primary: &'a Path,
}

impl<'a> Places<'a> {
    pub(super) fn of(env: &'a Env, primary: &'a Path, facts: &'a BootFacts) -> Self {
        let made = facts.files.iter().find(|(number, _)| *number == BOOT.file);
        Self { env, made: made.map_or(primary, |(_, spec)| spec.path.as_path()), primary }
    }

    /// Where the file is that was made as `path`; it need not be there.
    pub(super) fn find(&self, path: &Path) -> PathBuf {
        if path == self.made {
            return self.primary.into();
        }
        let beside = path.file_name().and_then(|name| Some(self.primary.parent()?.join(name))).unwrap_or_else(|| path.into());
        let is_there = |path: &Path| self.env.device.exists(path);
        if self.made == self.primary {
            return if is_there(path) || !is_there(&beside) { path.into() } else { beside };
        }
        let candidates = [Some(beside.clone()), self.as_far(path)];
        let found = candidates.into_iter().flatten().find(|candidate| is_there(candidate));
        found.unwrap_or_else(|| if is_there(self.made) { beside } else { path.into() })
    }

    /// The same way from the primary file as when they were made: folders that both paths of the primary file end in were
    /// moved as a whole with what is above them.
    fn as_far(&self, path: &Path) -> Option<PathBuf> {
        let (mut from, mut to) = (self.made.parent()?, self.primary.parent()?);
        while from.file_name().is_some() && from.file_name() == to.file_name() {
            (from, to) = (from.parent()?, to.parent()?);
        }
        Some(to.join(path.strip_prefix(from).ok()?))
    }
}
