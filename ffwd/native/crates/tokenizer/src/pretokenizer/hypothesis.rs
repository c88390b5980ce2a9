//! The conditions on the later text that one stage's splits and its open piece imply.

use super::classes::{ClassId, ClassSet};
use super::program::{step, PlaceId, Program, Thread};
use super::stage::{Segment, Stage};

/// One account of an incomplete text: where the stage has split it, and what is open. It is right
/// exactly if the rest of the text meets its conditions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct StageHypothesis {
    open: OpenSegment,
    /// The threads of the match that is open, best first.
    threads: Vec<Thread>,
    /// Threads that must never match: they would have been preferred to a closed match, or
    /// contradict a gap. Sorted.
    refuted: Vec<Thread>,
    /// The class of the next character.
    next: ClassSet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum OpenSegment {
    /// A piece without a character, and whether it may begin with each kind of segment.
    Empty {
        match_: bool,
        gap: bool,
    },
    Match,
    Gap,
}

impl StageHypothesis {
    /// At the start of a text.
    pub fn start() -> Self {
        Self {
            open: OpenSegment::Empty { match_: true, gap: true },
            threads: Vec::new(),
            refuted: Vec::new(),
            next: ClassSet::ALL,
        }
    }

    pub fn is_empty(&self) -> bool {
        matches!(self.open, OpenSegment::Empty { .. })
    }

    /// A bound on how much work it is to read one more character.
    pub fn cost(&self, program: &Program) -> usize {
        let own = program.cost(&self.threads) + program.cost(&self.refuted);
        // At most three segments may begin or continue.
        3 * (own + program.cost(&program.start) + 1)
    }

    /// Returns the accounts after one more character, if it continues the open piece.
    pub fn step(&self, stage: &Stage, class: ClassId) -> Vec<Self> {
        let mut results = Vec::new();
        let Some(rest) = self.rest(&stage.program, class) else { return results };
        let cuts = stage.cuts;
        let mut begin = |rest: &Rest, segment: Segment| {
            results.extend(rest.begin(&stage.program, class, segment));
        };
        match self.open {
            OpenSegment::Empty { match_, gap } => {
                for (allowed, segment) in [(match_, Segment::Match), (gap, Segment::Gap)] {
                    if allowed {
                        begin(&rest, segment);
                    }
                }
            }
            OpenSegment::Gap => {
                begin(&rest, Segment::Gap);
                if !cuts.between(Segment::Gap, Segment::Match) {
                    begin(&rest, Segment::Match);
                }
            }
            OpenSegment::Match => {
                for segment in [Segment::Match, Segment::Gap] {
                    if !cuts.between(Segment::Match, segment) {
                        let ended = rest.clone().after_match(self, &stage.program, class);
                        if let Some(ended) = ended {
                            begin(&ended, segment);
                        }
                    }
                }
                let mut threads = Vec::new();
                step(&stage.program, &self.threads, class, &mut threads);
                results.extend(rest.with(OpenSegment::Match, threads));
            }
        }
        results
    }

    /// Returns the remaining conditions after one more character.
    fn rest(&self, program: &Program, class: ClassId) -> Option<Rest> {
        let mut rest = Rest { refuted: Vec::new(), next: ClassSet::ALL };
        let fits = self.next.contains(class) && rest.refute(program, &self.refuted, class);
        fits.then_some(rest)
    }

    /// The accounts in which this stage's piece ends here.
    pub fn close(&self, stage: &Stage) -> Vec<Self> {
        let left = match self.open {
            OpenSegment::Empty { .. } => return Vec::new(),
            OpenSegment::Match => Segment::Match,
            OpenSegment::Gap => Segment::Gap,
        };
        let match_ = stage.cuts.between(left, Segment::Match);
        let gap = stage.cuts.between(left, Segment::Gap);
        if !match_ && !gap {
            return Vec::new();
        }
        let closed = |refuted: Vec<Thread>, next: ClassSet| {
            let open = OpenSegment::Empty { match_, gap };
            (!next.is_empty()).then_some(Self { open, threads: Vec::new(), refuted, next })
        };
        match self.open {
            OpenSegment::Match => {
                let matches = self.threads.iter().enumerate();
                matches
                    .filter(|(_, thread)| thread.place == PlaceId::MATCH)
                    .filter_map(|(index, thread)| {
                        let better = self.threads.iter().take(index);
                        let better = better.filter(|thread| thread.place != PlaceId::MATCH);
                        let refuted = sorted(self.refuted.iter().chain(better).copied().collect());
                        closed(refuted, self.next.and(thread.next))
                    })
                    .collect()
            }
            OpenSegment::Gap | OpenSegment::Empty { .. } => {
                closed(self.refuted.clone(), self.next).into_iter().collect()
            }
        }
    }

    /// Whether it is right if the text ends here.
    pub fn can_end(&self) -> bool {
        let matches =
            |thread: &Thread| thread.place == PlaceId::MATCH && thread.next.contains(ClassId::END);
        self.next.contains(ClassId::END)
            && (self.open != OpenSegment::Match || self.threads.iter().any(matches))
    }
}

/// The conditions on the text after a character, for any open part.
#[derive(Clone, Debug)]
struct Rest {
    refuted: Vec<Thread>,
    next: ClassSet,
}

impl Rest {
    /// Adds the successors of threads that must not match after one more character; `false` if one
    /// of them has matched.
    fn refute(&mut self, program: &Program, threads: &[Thread], class: ClassId) -> bool {
        for thread in threads.iter().filter(|thread| thread.next.contains(class)) {
            for &follower in program.after(thread.place) {
                if follower.place == PlaceId::MATCH {
                    self.next = self.next.without(follower.next);
                } else {
                    self.refuted.push(follower);
                }
            }
        }
        !self.next.is_empty()
    }

    /// The match of `before` ended before the character of `class`, so preferred alternatives must
    /// not match.
    fn after_match(
        mut self,
        before: &StageHypothesis,
        program: &Program,
        class: ClassId,
    ) -> Option<Self> {
        let ended = |thread: &Thread| thread.place == PlaceId::MATCH && thread.next.contains(class);
        let index = before.threads.iter().position(ended)?;
        let better: Vec<Thread> = before.threads.iter().take(index).copied().collect();
        let better: Vec<Thread> =
            better.into_iter().filter(|thread| thread.place != PlaceId::MATCH).collect();
        self.refute(program, &better, class).then_some(self)
    }

    /// A segment begins with the character of `class`.
    fn begin(
        &self,
        program: &Program,
        class: ClassId,
        segment: Segment,
    ) -> Option<StageHypothesis> {
        let mut rest = self.clone();
        match segment {
            Segment::Match => {
                let mut threads = Vec::new();
                step(program, &program.start, class, &mut threads);
                rest.with(OpenSegment::Match, threads)
            }
            Segment::Gap => {
                let fits = rest.refute(program, &program.start, class);
                if fits {
                    rest.with(OpenSegment::Gap, Vec::new())
                } else {
                    None
                }
            }
        }
    }

    fn with(self, open: OpenSegment, threads: Vec<Thread>) -> Option<StageHypothesis> {
        let fits = open != OpenSegment::Match || !threads.is_empty();
        fits.then(|| StageHypothesis {
            open,
            threads,
            refuted: sorted(self.refuted),
            next: self.next,
        })
    }
}

fn sorted(mut threads: Vec<Thread>) -> Vec<Thread> {
    threads.sort_unstable();
    threads.dedup();
    threads
}
