// SPDX-License-Identifier: GPL-2.0-only
//! The compiled schedulers: each is C with globals, so one machine at a time
//! may use it. The library holds the scheduler twice, for two runs at once.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};

use super::ffi::{self, Arithmetic, Ops, RawVariant};

unsafe extern "C" {
    static fulcrum_sim_0: RawVariant;
    static fulcrum_sim_1: RawVariant;
}

/// Which of the library's two are free.
static FREE: Mutex<[bool; 2]> = Mutex::new([true; 2]);
static FREED: Condvar = Condvar::new();

/// Exclusive use of one compiled scheduler.
pub struct Variant {
    raw: &'static RawVariant,
    /// Its place among the library's own; none: loaded from a file.
    place: Option<usize>,
}

// SAFETY: whoever has the Variant has its globals for himself, so it may move
// to another thread with them.
unsafe impl Send for Variant {}

impl Variant {
    /// The scheduler as it is; waits until one of the two is free.
    #[must_use]
    pub fn lease() -> Self {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let place = loop {
            if let Some(place) = free.iter().position(|free| *free) {
                break place;
            }
            free = FREED.wait(free).unwrap_or_else(PoisonError::into_inner);
        };
        free[place] = false;
        // SAFETY: constants of our own build, never written.
        let raw = unsafe {
            match place {
                0 => &fulcrum_sim_0,
                _ => &fulcrum_sim_1,
            }
        };
        Self {
            raw,
            place: Some(place),
        }
    }

    /// A scheduler compiled like the library's own into a shared object that
    /// exports it as `fulcrum_sim`. It stays loaded.
    ///
    /// # Errors
    ///
    /// What the dynamic linker says, or that the object was built for another
    /// version of the simulator.
    ///
    /// # Safety
    ///
    /// The file runs with this process's rights, and each file may be opened
    /// once only, for its globals are then this value's.
    pub unsafe fn open(path: &Path) -> Result<Self, String> {
        let name = CString::new(path.as_os_str().as_encoded_bytes())
            .map_err(|_| format!("{}: not a file name", path.display()))?;
        // SAFETY: valid strings; the caller vouches for the file's code.
        let raw = unsafe {
            let handle = libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            if handle.is_null() {
                let error = CStr::from_ptr(libc::dlerror()).to_string_lossy();
                return Err(format!("{}: {error}", path.display()));
            }
            libc::dlsym(handle, c"fulcrum_sim".as_ptr())
                .cast::<RawVariant>()
                .as_ref()
        };
        let raw = raw.ok_or_else(|| format!("{}: exports no fulcrum_sim", path.display()))?;
        if raw.sizes != ffi::sizes() {
            return Err(format!("{}: built for another simulator", path.display()));
        }
        Ok(Self { raw, place: None })
    }

    /// A scheduler that isn't compiled C; nobody else may use `raw`.
    #[must_use]
    pub(super) const fn of(raw: &'static RawVariant) -> Self {
        Self { raw, place: None }
    }

    /// The C side.
    #[must_use]
    pub const fn raw(&self) -> &'static RawVariant {
        self.raw
    }

    /// The callbacks.
    #[must_use]
    pub fn ops(&self) -> &'static Ops {
        // SAFETY: points to a constant of the same object.
        unsafe { &*self.raw.ops }
    }

    /// The pure arithmetic of `vtime.h` and the policy.
    #[must_use]
    pub fn arithmetic(&self) -> &'static Arithmetic {
        // SAFETY: points to a constant of the same object.
        unsafe { &*self.raw.arithmetic }
    }

    /// Names of the kernel functions, in the order of their counters.
    #[must_use]
    pub fn kfunc_names(&self) -> Vec<String> {
        (0..self.raw.nr_kfuncs as usize)
            .map(|index| {
                // SAFETY: an array of nr_kfuncs constant strings.
                let name = unsafe { CStr::from_ptr(*self.raw.kfunc_names.add(index)) };
                name.to_string_lossy().into_owned()
            })
            .collect()
    }
}

impl Drop for Variant {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            FREE.lock().unwrap_or_else(PoisonError::into_inner)[place] = true;
            FREED.notify_one();
        }
    }
}
