// SPDX-License-Identifier: GPL-2.0-only
//! Made-up machines for unit tests: a temporary `/proc` and `/sys`.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::view::SystemView;

/// A machine's files in a temporary folder.
pub struct Tree {
    folder: TempDir,
}

impl Tree {
    /// A machine without any file.
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    /// The same machine with one more file, or another text in it.
    pub fn file(self, path: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, text).expect("a file");
        self
    }

    /// The same machine without a file or folder.
    pub fn without(self, path: &str) -> Self {
        let path = self.folder.path().join(path);
        let removed = if path.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        removed.expect("something to remove");
        self
    }

    /// How the code under test sees the machine.
    pub fn view(&self) -> SystemView {
        SystemView::new(self.root())
    }

    /// The machine's root folder.
    pub fn root(&self) -> &Path {
        self.folder.path()
    }
}
