// SPDX-License-Identifier: GPL-2.0-only
//! Figures of a run: per group of tasks, of the machine, and what it cost.

/// Values by order of magnitude, 1/16 exact.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
    sum: u64,
}

const SUB_BITS: u32 = 5;

impl Histogram {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        let index = Self::index(value);
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        self.total += 1;
        self.sum += value;
        self.max = self.max.max(value);
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        let pairs = self.counts.iter_mut().zip(&other.counts);
        pairs.for_each(|(mine, theirs)| *mine += theirs);
        self.total += other.total;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    const fn index(value: u64) -> usize {
        let sub = 1 << SUB_BITS;
        if value < sub {
            return value as usize;
        }
        let shift = 63 - value.leading_zeros() - SUB_BITS;
        ((shift as usize + 1) << SUB_BITS) + ((value >> shift) as usize - sub as usize)
    }

    const fn value(index: usize) -> u64 {
        let sub = 1usize << SUB_BITS;
        if index < sub {
            return index as u64;
        }
        let shift = (index >> SUB_BITS) - 1;
        (((index & (sub - 1)) + sub) as u64) << shift
    }

    /// The value that `part` of all values don't exceed.
    #[must_use]
    pub fn percentile(&self, part: f64) -> u64 {
        let wanted = (self.total as f64 * part).ceil() as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted && *count > 0 {
                return Self::value(index).min(self.max);
            }
        }
        self.max
    }

    /// The largest value.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// How many values.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.total
    }

    /// Their mean; 0 if there are none.
    #[must_use]
    pub const fn mean(&self) -> u64 {
        if self.total == 0 {
            return 0;
        }
        self.sum / self.total
    }
}

/// Figures of a group of tasks.
#[derive(Clone, Debug, Default)]
pub struct GroupStats {
    /// From waking to running, ns.
    pub wakeup: Histogram,
    /// Every wait for a CPU, ns.
    pub wait: Histogram,
    /// From a request's arrival to its completion, ns.
    pub response: Histogram,
    /// Requests that took longer than their period.
    pub misses: u64,
    /// Starts on another CPU than the last time.
    pub migrations: u64,
    /// Taken off the CPU while runnable.
    pub preemptions: u64,
    /// CPU time, ns.
    pub ran: u64,
}

impl GroupStats {
    /// Adds another group's figures.
    pub fn merge(&mut self, other: &Self) {
        self.wakeup.merge(&other.wakeup);
        self.wait.merge(&other.wait);
        self.response.merge(&other.response);
        self.misses += other.misses;
        self.migrations += other.migrations;
        self.preemptions += other.preemptions;
        self.ran += other.ran;
    }
}

/// Figures of the machine.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// By group.
    pub groups: Vec<GroupStats>,
    /// CPU time of the tasks directly in each cgroup, ns.
    pub cgroups: Vec<u64>,
    /// Events handled.
    pub events: u64,
    /// ... of which within another CPU's callback.
    pub interleaved: u64,
    /// Wakeups.
    pub wakeups: u64,
    /// Wakeups for which an idle CPU that the task may use existed.
    pub idle_existed: u64,
    /// ... and that went to one.
    pub idle_taken: u64,
    /// Calls of ops.dispatch().
    pub dispatches: u64,
    /// Tasks moved between run queues.
    pub migrations: u64,
    /// Switches to a task.
    pub switches: u64,
    /// Dispatch-queue locks taken.
    pub dsq_locks: u64,
    /// Run-queue locks taken beside the own one.
    pub rq_locks: u64,
    /// Idle CPU time while a task that could have used it waited, ns.
    pub wasted: u64,
    /// Violations counted instead of failing the run.
    pub violations: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_thirty_second() {
        let mut histogram = Histogram::default();
        (1..=100_000).for_each(|value| histogram.add(value));
        for part in [0.5, 0.9, 0.99] {
            let exact = part * 100_000.0;
            let error = (histogram.percentile(part) as f64 - exact).abs() / exact;
            assert!(error < 1.0 / 31.0, "{part}: {error}");
        }
        assert_eq!(histogram.max(), 100_000);
        assert_eq!(Histogram::default().percentile(0.5), 0);
    }
}
