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

#[cfg(test)]
mod tests {
    use super::Places;
    use crate::spec::{FileKind, FileSpec};
    use crate::store::boot::BootFacts;
    use std::path::{Path, PathBuf};
    use thawdb_device::OpenMode;
    use thawdb_device::sim::Simulation;

    const MADE: [&str; 4] = ["/data/shop/a.mdf", "/data/shop/b.ndf", "/data/logs/shop.ldf", "/fast/c.ndf"];

    /// Where the files made at [`MADE`] are looked for, if the primary one is opened at `primary` and `there` is what there is.
    fn found(primary: &str, there: &[&str]) -> Vec<PathBuf> {
        let env = Simulation::with_seed(1).env();
        for path in there.iter().map(Path::new) {
            env.device.create_folder(path.parent().expect("a folder above")).expect("made");
            drop(env.device.open(path, OpenMode::CreateNew).expect("made"));
        }
        let spec = |path: &str, kind| FileSpec {
            name: "f".into(),
            path: path.into(),
            kind,
            size_bytes: 8 << 20,
            size_bytes_max: None,
            growth_bytes: 0,
        };
        let files = (1..).zip(MADE).map(|(number, path)| match Path::new(path).extension() {
            Some(log) if log == "ldf" => (0, spec(path, FileKind::Log)),
            _ => (number, spec(path, FileKind::Rows { filegroup: 1 })),
        });
        let facts = BootFacts { stamp: 1, files: files.collect() };
        let places = Places::of(&env, Path::new(primary), &facts);
        MADE.iter().map(|path| places.find(Path::new(path))).collect()
    }

    fn paths(all: [&str; 4]) -> Vec<PathBuf> {
        all.map(PathBuf::from).into()
    }

    #[test]
    fn where_they_were_made() {
        assert_eq!(found(MADE[0], &MADE), paths(MADE));
        // Missing ones are missed where they were made, whatever else lies about.
        assert_eq!(found(MADE[0], &[MADE[0], "/copy/logs/shop.ldf"]), paths(MADE));
    }

    #[test]
    fn moved_beside_a_primary_file_that_stayed() {
        assert_eq!(found(MADE[0], &[MADE[0], MADE[1], "/data/shop/shop.ldf", MADE[3]])[2], Path::new("/data/shop/shop.ldf"));
        // What is where it was made comes first.
        assert_eq!(found(MADE[0], &[MADE[0], MADE[2], "/data/shop/shop.ldf"])[2], Path::new(MADE[2]));
    }

    #[test]
    fn a_primary_file_that_moved_alone_finds_the_others_where_they_were_made() {
        let there = ["/new/a.mdf", MADE[1], MADE[2], MADE[3]];
        assert_eq!(found("/new/a.mdf", &there), paths(there));
    }

    #[test]
    fn of_a_copy_nothing_of_the_originals_is_found() {
        let copied = ["/copy/shop/a.mdf", "/copy/shop/b.ndf", "/copy/logs/shop.ldf"];
        let both: Vec<_> = MADE.into_iter().chain(copied).collect();
        let expected = paths([copied[0], copied[1], copied[2], "/copy/shop/c.ndf"]);
        assert_eq!(found(copied[0], &both), expected);
        // The log was not copied: it is missed, and the original's stays where it is.
        let without: Vec<_> = both.iter().copied().filter(|path| *path != copied[2]).collect();
        assert_eq!(found(copied[0], &without)[2], Path::new("/copy/shop/shop.ldf"));
    }

    #[test]
    fn all_in_one_folder_lie_beside_the_primary_file() {
        let there = ["/one/a.mdf", "/one/b.ndf", "/one/shop.ldf", "/one/c.ndf"];
        assert_eq!(found("/one/a.mdf", &[&there[..], &MADE[..]].concat()), paths(there));
    }
}
