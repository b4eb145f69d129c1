// SPDX-License-Identifier: GPL-2.0-only
//! Weighted max-min fairness over a tree: what each member of a cgroup gets of
//! what the cgroup gets, if CPUs could be divided without end.
//!
//! A member is a task, or a cgroup within. Members share by weight; what one
//! can't use goes to its siblings before anybody else. A task can use one CPU
//! at most; one whose rate is already settled, by a limit elsewhere, counts as
//! that much of its cgroup's part.

/// A task or a cgroup: at what level it stops growing.
#[derive(Clone, Copy, Debug)]
struct Member {
    weight: f64,
    /// It gets no less.
    low: f64,
    /// ... and no more.
    high: f64,
}

/// What a leaf asks for.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// Its cgroup.
    pub cgroup: usize,
    /// 1024 = nice 0
    pub weight: f64,
    /// CPUs that it gets at least.
    pub low: f64,
    /// ... and at most.
    pub high: f64,
}

/// Divides `amount` CPUs among `leaves`. `cgroups` has parent and weight of
/// each, parents first, 0 the root. The answer is in the order of the leaves.
#[must_use]
pub fn fill(cgroups: &[(usize, f64)], leaves: &[Leaf], amount: f64) -> Vec<f64> {
    let mut tree = Tree::new(cgroups, leaves);
    let mut rates = vec![0.0; leaves.len()];
    tree.amounts[0] = amount.min(tree.members[0].high);
    for cgroup in 0..cgroups.len() {
        let children = std::mem::take(&mut tree.children[cgroup]);
        if children.is_empty() {
            continue;
        }
        let member = |child: &Child| match *child {
            Child::Leaf(leaf) => of_leaf(&leaves[leaf]),
            Child::Cgroup(inner) => tree.members[inner],
        };
        let members: Vec<Member> = children.iter().map(member).collect();
        let parts = divide(&members, tree.amounts[cgroup]);
        for (child, part) in children.into_iter().zip(parts) {
            match child {
                Child::Leaf(leaf) => rates[leaf] = part,
                Child::Cgroup(inner) => tree.amounts[inner] = part,
            }
        }
    }
    rates
}

fn of_leaf(leaf: &Leaf) -> Member {
    Member {
        weight: leaf.weight,
        low: leaf.low,
        high: leaf.high,
    }
}

#[derive(Clone, Copy)]
enum Child {
    Leaf(usize),
    Cgroup(usize),
}

struct Tree {
    members: Vec<Member>,
    children: Vec<Vec<Child>>,
    amounts: Vec<f64>,
}

impl Tree {
    /// Only cgroups that have a leaf somewhere below take part.
    fn new(cgroups: &[(usize, f64)], leaves: &[Leaf]) -> Self {
        let empty = |&(_, weight): &(usize, f64)| Member {
            weight,
            low: 0.0,
            high: 0.0,
        };
        let mut tree = Self {
            members: cgroups.iter().map(empty).collect(),
            children: vec![Vec::new(); cgroups.len()],
            amounts: vec![0.0; cgroups.len()],
        };
        for (index, leaf) in leaves.iter().enumerate() {
            tree.children[leaf.cgroup].push(Child::Leaf(index));
            tree.members[leaf.cgroup].low += leaf.low;
            tree.members[leaf.cgroup].high += leaf.high;
        }
        for inner in (1..cgroups.len()).rev() {
            if tree.children[inner].is_empty() {
                continue;
            }
            let Member { low, high, .. } = tree.members[inner];
            let parent = cgroups[inner].0;
            tree.children[parent].push(Child::Cgroup(inner));
            tree.members[parent].low += low;
            tree.members[parent].high += high;
        }
        tree
    }
}

/// `amount` among `members`: each gets the level times its weight, within its
/// bounds. Each round settles those that the level of the round pushes out of
/// their bounds, on the side that weighs more.
fn divide(members: &[Member], amount: f64) -> Vec<f64> {
    let mut parts: Vec<Option<f64>> = vec![None; members.len()];
    let mut left = amount;
    loop {
        let open = || parts.iter().zip(members).filter(|(part, _)| part.is_none());
        let weight: f64 = open().map(|(_, member)| member.weight).sum();
        if weight <= 0.0 {
            break;
        }
        let level = (left / weight).max(0.0);
        let over: f64 = open()
            .map(|(_, m)| (m.weight * level - m.high).max(0.0))
            .sum();
        let under: f64 = open()
            .map(|(_, m)| (m.low - m.weight * level).max(0.0))
            .sum();
        let settle_high = over >= under;
        let done = over <= 0.0 && under <= 0.0;
        for (part, member) in parts.iter_mut().zip(members) {
            if part.is_some() {
                continue;
            }
            let share = member.weight * level;
            let settled = match settle_high {
                _ if done => share,
                true if share > member.high => member.high,
                false if share < member.low => member.low,
                _ => continue,
            };
            *part = Some(settled);
            left -= settled;
        }
    }
    parts.into_iter().map(|part| part.unwrap_or(0.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(cgroup: usize, weight: f64) -> Leaf {
        Leaf {
            cgroup,
            weight,
            low: 0.0,
            high: 1.0,
        }
    }

    fn rounded(cgroups: &[(usize, f64)], leaves: &[Leaf], amount: f64) -> Vec<f64> {
        let rates = fill(cgroups, leaves, amount);
        rates
            .iter()
            .map(|rate| (rate * 1e4).round() / 1e4)
            .collect()
    }

    #[test]
    fn weights_caps_and_what_is_left_over() {
        let root = [(0, 0.0)];
        let three = [leaf(0, 3.0), leaf(0, 1.0), leaf(0, 1.0)];
        assert_eq!(rounded(&root, &three, 1.0), [0.6, 0.2, 0.2]);
        // Nobody uses more than one CPU.
        assert_eq!(rounded(&root, &three, 2.0), [1.0, 0.5, 0.5]);
        assert_eq!(rounded(&root, &three, 9.0), [1.0, 1.0, 1.0]);
        assert_eq!(rounded(&root, &[], 2.0), [0.0; 0]);
    }

    #[test]
    fn a_cgroup_is_one_among_its_siblings() {
        // a: weight 3 with two tasks, b: weight 1 with one, a task in the root.
        let tree = [(0, 0.0), (0, 3.0), (0, 1.0)];
        let leaves = [leaf(1, 1.0), leaf(1, 1.0), leaf(2, 9.0), leaf(0, 1.0)];
        assert_eq!(rounded(&tree, &leaves, 1.0), [0.3, 0.3, 0.2, 0.2]);
        // On two CPUs a uses no more than its two tasks can.
        assert_eq!(rounded(&tree, &leaves[..3], 2.0), [0.75, 0.75, 0.5]);
        // Nested: a/c has all of a.
        let nested = [(0, 0.0), (0, 1.0), (1, 7.0), (0, 1.0)];
        let leaves = [leaf(2, 1.0), leaf(2, 1.0), leaf(3, 1.0)];
        assert_eq!(rounded(&nested, &leaves, 1.0), [0.25, 0.25, 0.5]);
    }

    #[test]
    fn a_settled_rate_counts_as_its_cgroups_part() {
        let tree = [(0, 0.0), (0, 1.0), (0, 1.0)];
        let settled = Leaf {
            low: 0.4,
            high: 0.4,
            ..leaf(1, 1.0)
        };
        let leaves = [settled, leaf(1, 1.0), leaf(2, 1.0)];
        assert_eq!(rounded(&tree, &leaves, 1.0), [0.4, 0.1, 0.5]);
        // More than the cgroup is due: the others share the rest.
        let settled = Leaf {
            low: 0.8,
            high: 0.8,
            ..leaf(1, 1.0)
        };
        let leaves = [settled, leaf(1, 1.0), leaf(2, 1.0)];
        assert_eq!(rounded(&tree, &leaves, 1.0), [0.8, 0.0, 0.2]);
    }
}
