// SPDX-License-Identifier: GPL-2.0-only
//! The rates of the ideal machine's tasks at one moment.

use super::fill::{Leaf, fill};
use super::fluid::{Fluid, Task};

impl Fluid<'_> {
    /// The rates of all tasks that run: by weight in the tree; then the set of
    /// CPUs that is asked for most beyond what it has is divided among the
    /// tasks that can't leave it, these are settled, and so on.
    pub(super) fn share(&mut self) {
        if self.cgroups.len() == 1 && self.masks.len() == 1 {
            return self.share_evenly();
        }
        let running: Vec<usize> = (0..self.tasks.len())
            .filter(|&id| self.tasks[id].running)
            .collect();
        let leaf = |&id: &usize| Leaf {
            cgroup: self.tasks[id].cgroup,
            weight: self.tasks[id].weight,
            low: 0.0,
            high: 1.0,
        };
        let mut leaves: Vec<Leaf> = running.iter().map(leaf).collect();
        loop {
            let rates = fill(&self.cgroups, &leaves, self.cpus as f64);
            let Some(index) = self.fullest(&running, &rates) else {
                for (&id, rate) in running.iter().zip(rates) {
                    self.tasks[id].rate = rate;
                }
                return;
            };
            let (masks, cpus) = &self.unions[index];
            let inside: Vec<usize> = (0..running.len())
                .filter(|&at| masks.contains(&self.tasks[running[at]].mask))
                .collect();
            let members: Vec<Leaf> = inside.iter().map(|&at| leaves[at]).collect();
            let settled = fill(&self.cgroups, &members, *cpus);
            for (at, rate) in inside.into_iter().zip(settled) {
                leaves[at].low = rate;
                leaves[at].high = rate;
            }
        }
    }

    /// The same without cgroups and masks, in place: large machines have many
    /// tasks and many events.
    fn share_evenly(&mut self) {
        let mut weight = 0.0;
        for task in self.tasks.iter_mut().filter(|task| task.running) {
            task.rate = 0.0;
            weight += task.weight;
        }
        let mut left = self.cpus as f64;
        while weight > 0.0 {
            let level = left / weight;
            let (before, mut capped) = (weight, 0.0);
            let open = |task: &&mut Task| task.running && task.rate == 0.0;
            for task in self.tasks.iter_mut().filter(open) {
                if task.weight * level >= 1.0 {
                    task.rate = 1.0;
                    weight -= task.weight;
                    capped += 1.0;
                }
            }
            left -= capped;
            if weight == before {
                for task in self.tasks.iter_mut().filter(open) {
                    task.rate = task.weight * level;
                }
                return;
            }
        }
    }

    /// The union of masks whose tasks get the largest multiple of its CPUs.
    fn fullest(&self, running: &[usize], rates: &[f64]) -> Option<usize> {
        if self.masks.len() == 1 {
            return None;
        }
        let mut per_mask = vec![0.0; self.masks.len()];
        for (&id, rate) in running.iter().zip(rates) {
            per_mask[self.tasks[id].mask] += rate;
        }
        let load = |(masks, cpus): &(Vec<usize>, f64)| {
            masks.iter().map(|&mask| per_mask[mask]).sum::<f64>() / cpus
        };
        let loads = self.unions.iter().map(load).enumerate();
        let most = loads.max_by(|a, b| a.1.total_cmp(&b.1))?;
        (most.1 > 1.0 + 1e-9).then_some(most.0)
    }
}
