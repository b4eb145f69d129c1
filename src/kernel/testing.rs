// SPDX-License-Identifier: GPL-2.0-only
//! Made-up machines for unit tests: a temporary `/proc` and `/sys`, and BTF
//! written byte by byte.

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

/// Writes BTF; see the kernel's `Documentation/bpf/btf.rst`.
pub struct BtfWriter {
    types: Vec<u8>,
    strings: Vec<u8>,
    count: u32,
}

impl BtfWriter {
    /// BTF without types.
    pub fn new() -> Self {
        Self {
            types: Vec::new(),
            strings: vec![0],
            count: 0,
        }
    }

    fn name(&mut self, name: &str) -> u32 {
        if name.is_empty() {
            return 0;
        }
        let offset = self.strings.len() as u32;
        self.strings.extend_from_slice(name.as_bytes());
        self.strings.push(0);
        offset
    }

    fn words(&mut self, words: &[u32]) {
        self.types
            .extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    }

    fn head(&mut self, name: &str, kind: u32, len: u32, size_or_type: u32) -> u32 {
        let name = self.name(name);
        self.words(&[name, kind << 24 | len, size_or_type]);
        self.count += 1;
        self.count
    }

    /// A structure with pointer-sized members of the names given.
    pub fn structure(&mut self, name: &str, members: &[&str]) -> u32 {
        let id = self.head(name, 4, members.len() as u32, 8 * members.len() as u32);
        for (index, member) in members.iter().enumerate() {
            let member = self.name(member);
            self.words(&[member, 0, index as u32 * 64]);
        }
        id
    }

    /// A 64-bit enumeration.
    pub fn enumeration(&mut self, name: &str, values: &[(&str, u64)]) -> u32 {
        let id = self.head(name, 19, values.len() as u32, 8);
        for (name, value) in values {
            let name = self.name(name);
            self.words(&[name, *value as u32, (*value >> 32) as u32]);
        }
        id
    }

    /// A pointer to type `to`.
    pub fn pointer(&mut self, to: u32) -> u32 {
        self.head("", 2, 0, to)
    }

    /// A function with parameters of the names and types given.
    pub fn function(&mut self, name: &str, parameters: &[(&str, u32)]) -> u32 {
        let prototype = self.head("", 13, parameters.len() as u32, 0);
        for (name, kind) in parameters {
            let name = self.name(name);
            self.words(&[name, *kind]);
        }
        self.head(name, 12, 0, prototype)
    }

    /// The bytes of `/sys/kernel/btf/vmlinux`.
    pub fn finish(self) -> Vec<u8> {
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let mut bytes = Vec::new();
        bytes.extend(0xeb9f_u16.to_ne_bytes());
        bytes.extend([1, 0]);
        for word in [24, 0, types, types, strings] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(self.types);
        bytes.extend(self.strings);
        bytes
    }
}
