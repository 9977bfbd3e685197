//! A folder to work in: the user's own, or a temporary one that goes when the work is done.

use crate::cmd::Failure;
use std::path::{Path, PathBuf};

/// A folder.
#[derive(Debug)]
pub struct Workspace {
    path: PathBuf,
    remove: bool,
}

impl Workspace {
    /// `folder`, or a new one for `purpose`; a new one is removed in the end unless `keep`.
    pub fn new(folder: Option<&Path>, purpose: &str, keep: bool) -> Result<Self, Failure> {
        let (path, remove) = match folder {
            Some(folder) => (folder.to_owned(), false),
            None => (std::env::temp_dir().join(format!("thawdb-{purpose}-{}", std::process::id())), !keep),
        };
        std::fs::create_dir_all(&path).map_err(|e| Failure::of(path.display(), e))?;
        Ok(Self { path, remove })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it will be removed.
    pub fn is_temporary(&self) -> bool {
        self.remove
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if self.remove {
            // What cannot be removed now the system will, in its own time: it is in its temporary folder.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_folders_go_and_others_stay() {
        let temporary = Workspace::new(None, "workspace-test", false).unwrap();
        let path = temporary.path().to_owned();
        std::fs::write(path.join("f"), "x").unwrap();
        let given = Workspace::new(Some(&path.join("inner")), "x", false).unwrap();
        assert!(!given.is_temporary());
        drop(given);
        assert!(path.join("inner").exists());
        drop(temporary);
        assert!(!path.exists());
    }
}
