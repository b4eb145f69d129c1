// SPDX-License-Identifier: GPL-2.0-only
//! What each cgroup got of the CPUs, and what its weights grant it.
//!
//! Granted is what an ideal scheduler would give: at each level the parent's
//! part is shared out by weight among those that have something runnable,
//! none gets more than it can use, and what one can't use goes to the others.

use crate::kernel::inspect::GroupView;

/// Weight of a nice-0 task, and of `cpu.weight` 100.
const NICE_0: f64 = 1024.0;

/// One cgroup's part of the CPU time that all tasks used, 0 to 1, with all that
/// is below it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// What it got.
    pub got: f64,
    /// What its weights grant it.
    pub owed: f64,
    /// Runnable tasks, on average.
    pub runnable: f64,
}

/// Somebody who competes at one level: a child, or a cgroup's own tasks.
#[derive(Clone, Copy, Debug)]
struct Claim {
    weight: f64,
    /// CPUs that it can use at most.
    demand: f64,
    granted: f64,
}

/// The shares of all `groups`, in their order. `ran` says how many CPUs the own
/// tasks of each used, on average; the first is the root.
pub fn shares(groups: &[GroupView], ran: &[f64]) -> Vec<Share> {
    let mut found = vec![Share::default(); groups.len()];
    let children = children(groups);
    sum_up(groups, ran, &children, &mut found);
    let all = found.first().map_or(0.0, |root| root.got);
    if all <= 0.0 {
        return found;
    }
    if let Some(root) = found.first_mut() {
        root.owed = all;
    }
    grant(groups, ran, &children, &mut found);
    for share in &mut found {
        share.got /= all;
        share.owed /= all;
    }
    found
}

/// The places of each group's children; parents come before them in `order`.
fn children(groups: &[GroupView]) -> Vec<Vec<usize>> {
    let mut children = vec![Vec::new(); groups.len()];
    for (at, group) in groups.iter().enumerate().skip(1) {
        let parent = groups
            .iter()
            .position(|other| other.slot == group.parent)
            .filter(|&parent| groups.get(parent).is_some_and(|p| p.depth < group.depth));
        if let Some(list) = parent.and_then(|parent| children.get_mut(parent)) {
            list.push(at);
        }
    }
    children
}

fn by_depth(groups: &[GroupView]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&at| groups.get(at).map_or(0, |group| group.depth));
    order
}

/// CPUs used and runnable tasks of whole subtrees.
fn sum_up(groups: &[GroupView], ran: &[f64], children: &[Vec<usize>], found: &mut [Share]) {
    for at in by_depth(groups).into_iter().rev() {
        let mut sum = Share {
            got: ran.get(at).copied().unwrap_or(0.0),
            owed: 0.0,
            runnable: groups.get(at).map_or(0.0, |group| group.busy),
        };
        for share in children
            .get(at)
            .into_iter()
            .flatten()
            .filter_map(|&child| found.get(child))
        {
            sum.got += share.got;
            sum.runnable += share.runnable;
        }
        if let Some(share) = found.get_mut(at) {
            *share = sum;
        }
    }
}

/// What each is owed, in CPUs; the root's is known.
fn grant(groups: &[GroupView], ran: &[f64], children: &[Vec<usize>], found: &mut [Share]) {
    for at in by_depth(groups) {
        let (Some(group), Some(list)) = (groups.get(at), children.get(at)) else {
            continue;
        };
        let part = found.get(at).map_or(0.0, |share| share.owed);
        // A subtree can use as much as it has runnable, and has used what it
        // used. What the root's own tasks want is known from their use only.
        let own = ran.get(at).copied().unwrap_or(0.0);
        let mut claims = vec![Claim {
            weight: if at == 0 { NICE_0 } else { group.load },
            demand: if at == 0 { own } else { group.busy.max(own) },
            granted: 0.0,
        }];
        for &child in list {
            let (weight, runnable, got) = groups
                .get(child)
                .zip(found.get(child))
                .map_or((0.0, 0.0, 0.0), |(g, s)| {
                    (g.weight.into(), s.runnable, s.got)
                });
            claims.push(Claim {
                weight: weight * runnable.clamp(0.0, 1.0),
                demand: runnable.max(got),
                granted: 0.0,
            });
        }
        share_out(part, &mut claims);
        for (&child, claim) in list.iter().zip(claims.iter().skip(1)) {
            if let Some(share) = found.get_mut(child) {
                share.owed = claim.granted;
            }
        }
    }
}

/// Shares `part` out by weight; nobody gets more than it demands.
fn share_out(part: f64, claims: &mut [Claim]) {
    let mut left = part;
    // Each round satisfies one at least.
    for _ in 0..claims.len() {
        let open = |claim: &&mut Claim| claim.granted < claim.demand && claim.weight > 0.0;
        let weights: f64 = claims.iter_mut().filter(open).map(|c| c.weight).sum();
        if weights <= 0.0 || left <= 1e-9 {
            return;
        }
        let round = left;
        for claim in claims.iter_mut().filter(open) {
            let more = (round * claim.weight / weights).min(claim.demand - claim.granted);
            claim.granted += more;
            left -= more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(slot: usize, parent: usize, depth: u32, weight: u32, busy: f64) -> GroupView {
        GroupView {
            slot,
            id: slot as u64,
            parent,
            depth,
            weight,
            busy,
            load: busy * NICE_0,
            ..GroupView::default()
        }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    #[test]
    fn busy_siblings_are_owed_by_weight() {
        let groups = [
            group(0, 0, 0, 1024, 0.0),
            group(1, 0, 1, 1024, 3.0),
            group(2, 0, 1, 3072, 3.0),
        ];
        let found = shares(&groups, &[0.0, 0.5, 0.5]);
        assert!(near(found[0].got, 1.0) && near(found[0].owed, 1.0));
        assert!(near(found[1].got, 0.5) && near(found[1].owed, 0.25));
        assert!(near(found[2].owed, 0.75));
    }

    #[test]
    fn what_one_cannot_use_goes_to_the_others() {
        let groups = [
            group(0, 0, 0, 1024, 0.0),
            group(1, 0, 1, 9000, 0.1),
            group(2, 0, 1, 1024, 4.0),
            group(3, 2, 2, 2048, 2.0),
            group(4, 2, 2, 1024, 2.0),
        ];
        let found = shares(&groups, &[0.0, 0.1, 0.0, 0.6, 0.3]);
        assert!(near(found[1].owed, 0.1), "{found:?}");
        assert!(near(found[2].owed, 0.9) && near(found[2].got, 0.9));
        // Between the children and the own tasks, of which there are four.
        assert!(near(found[3].owed / found[4].owed, 2.0), "{found:?}");
    }

    #[test]
    fn odd_trees_do_no_harm() {
        let groups = [group(0, 0, 0, 0, 0.0), group(7, 7, 1, 0, f64::NAN)];
        assert_eq!(shares(&groups, &[]).len(), 2);
        assert_eq!(shares(&[], &[]), []);
        let idle = shares(&groups[..1], &[0.0]);
        assert_eq!(idle, [Share::default()]);
    }
}
