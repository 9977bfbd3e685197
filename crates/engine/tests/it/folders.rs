//! Folders of a test's own: empty at first, gone when its thread ends. A suite of instances would fill a small disk.

use std::cell::RefCell;
use std::path::PathBuf;

thread_local! {
    static MADE: RefCell<Vec<Folder>> = const { RefCell::new(Vec::new()) };
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is removed by the next test of the name.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Where the folder of this name is.
pub fn path_of(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("engine-{name}"))
}

/// The folder of this name, which is not there yet.
pub fn folder(name: &str) -> PathBuf {
    let path = path_of(name);
    let _ = std::fs::remove_dir_all(&path);
    MADE.with_borrow_mut(|made| made.push(Folder(path.clone())));
    path
}
