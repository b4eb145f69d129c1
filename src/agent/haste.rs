// SPDX-License-Identifier: GPL-2.0-only
//! Priority for the moments in which the scheduler is loaded. Reading the
//! kernel's type information and verifying the program are this process's own
//! work: on a machine full of tasks, with no more than its fair share, that
//! took tens of seconds.

use rustix::process::{getpriority_process, setpriority_process};

/// The highest priority of ordinary tasks.
const HIGHEST: i32 = -20;

/// Raises the calling thread's priority until dropped.
pub struct Haste {
    former: Option<i32>,
}

impl Haste {
    /// Begin. Whoever may not raise the priority goes on without.
    pub fn begin() -> Self {
        let former = getpriority_process(None).and_then(|former| {
            setpriority_process(None, HIGHEST)?;
            Ok(former)
        });
        if let Err(error) = &former {
            log::debug!("loading at ordinary priority ({error})");
        }
        Self {
            former: former.ok(),
        }
    }
}

impl Drop for Haste {
    fn drop(&mut self) {
        // Lowering one's own priority is always allowed.
        if let Some(former) = self.former {
            let _ = setpriority_process(None, former);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_priority_comes_back() {
        let before = getpriority_process(None).unwrap();
        let haste = Haste::begin();
        let during = getpriority_process(None).unwrap();
        assert_eq!(
            during == HIGHEST,
            haste.former.is_some() || before == HIGHEST
        );
        drop(haste);
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
