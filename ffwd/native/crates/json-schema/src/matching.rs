//! Assigns different values to places: a flow from places of one kind to values of one class.

use std::collections::VecDeque;

/// How many values of each class are left, and which places have taken how many.
///
/// Places with the same values are one *domain*, and values that the same domains have are one
/// *class*, so the graph stays small whatever the numbers are.
#[derive(Clone, Debug)]
pub struct Flow<'a> {
    /// For each domain, its classes.
    classes: &'a [Vec<usize>],
    left: Vec<u64>,
    /// For each class, how many of its values each domain has.
    given: Vec<Vec<u64>>,
    /// How many edges have been looked at.
    pub work: usize,
}

/// A path to an unused value: the class at its end, for each class the domain that takes from it,
/// and for each domain the class that it returns to.
struct Path {
    end: usize,
    taker: Vec<Option<usize>>,
    returned: Vec<Option<usize>>,
}

impl<'a> Flow<'a> {
    pub fn new(classes: &'a [Vec<usize>], left: &[u64]) -> Self {
        let given = vec![vec![0; classes.len()]; left.len()];
        Self { classes, left: left.to_vec(), given, work: 0 }
    }

    fn path(&mut self, domain: usize) -> Option<Path> {
        let mut taker = vec![None; self.left.len()];
        let mut returned = vec![None; self.classes.len()];
        let mut reached = vec![false; self.classes.len()];
        reached[domain] = true;
        let mut queue = VecDeque::from([domain]);
        while let Some(domain) = queue.pop_front() {
            for &class in &self.classes[domain] {
                self.work += 1;
                if taker[class].is_some() {
                    continue;
                }
                taker[class] = Some(domain);
                if self.left[class] > 0 {
                    return Some(Path { end: class, taker, returned });
                }
                for (other, &given) in self.given[class].iter().enumerate() {
                    if given > 0 && !reached[other] {
                        reached[other] = true;
                        returned[other] = Some(class);
                        queue.push_back(other);
                    }
                }
                self.work += self.classes.len();
            }
        }
        None
    }

    /// Assigns values to up to `wanted` more places of a domain along augmenting paths, and returns
    /// to how many. Places with values keep one.
    pub fn fill(&mut self, domain: usize, wanted: u64) -> u64 {
        let mut open = wanted;
        while open > 0 {
            let Some(Path { end, taker, returned }) = self.path(domain) else { break };
            let mut amount = open.min(self.left[end]);
            let mut class = end;
            while let Some(at) = taker[class] {
                let Some(before) = returned[at] else { break };
                amount = amount.min(self.given[before][at]);
                class = before;
            }
            self.left[end] -= amount;
            class = end;
            while let Some(at) = taker[class] {
                self.given[class][at] += amount;
                let Some(before) = returned[at] else { break };
                self.given[before][at] -= amount;
                class = before;
            }
            open -= amount;
        }
        wanted - open
    }

    /// Whether all places with values can still have one if a class loses one value.
    pub fn can_spare(&mut self, class: usize) -> bool {
        self.left[class] > 0
            || (0..self.classes.len())
                .any(|domain| self.given[class][domain] > 0 && self.path(domain).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether places can have different values, and which values they cannot spare, by brute
    /// force.
    fn by_trying(places: &[Vec<usize>], without: &[usize]) -> bool {
        match places.split_first() {
            None => true,
            Some((first, rest)) => first.iter().any(|&value| {
                !without.contains(&value) && by_trying(rest, &[without, &[value]].concat())
            }),
        }
    }

    #[test]
    fn flows_agree_with_trying_all_assignments() {
        let mut seed = 7u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        let mut outcomes = [0; 2];
        for _ in 0..3000 {
            let values = 1 + random(5) as usize;
            let domains: Vec<Vec<usize>> = (0..1 + random(4))
                .map(|_| (0..values).filter(|_| random(2) == 0).collect())
                .collect();
            let times: Vec<u64> = domains.iter().map(|_| 1 + random(2)).collect();
            let places: Vec<Vec<usize>> = domains
                .iter()
                .zip(&times)
                .flat_map(|(domain, &times)| vec![domain.clone(); times as usize])
                .collect();
            let left = vec![1; values];
            let mut flow = Flow::new(&domains, &left);
            let full = (0..domains.len()).all(|at| flow.fill(at, times[at]) == times[at]);
            assert_eq!(full, by_trying(&places, &[]), "{places:?}");
            outcomes[usize::from(full)] += 1;
            for value in (0..values).filter(|_| full) {
                assert_eq!(flow.can_spare(value), by_trying(&places, &[value]), "{places:?}");
            }
        }
        assert!(outcomes.iter().all(|&seen| seen > 300), "{outcomes:?}");
    }
}
