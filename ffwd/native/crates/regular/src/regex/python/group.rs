//! Groups, and flags within the pattern.

use super::{PatternError, PythonFlags, PythonParser, Tree, MAX_NESTING, NESTED_GROUPS};

/// The kind of an open group.
enum Kind {
    Plain,
    Atomic,
    Look { behind: bool, negative: bool },
}

impl PythonParser<'_> {
    /// A group, past its parenthesis; none for a comment, or flags of the whole pattern, which must be
    /// `allowed` here.
    pub(super) fn group(
        &mut self,
        start: usize,
        allowed: bool,
    ) -> Result<Option<Tree>, PatternError> {
        let invalid = |message: &str| Err(PatternError::invalid(start, message));
        let outside = self.flags;
        let kind = if !self.eat('?') {
            self.groups.count += 1;
            Kind::Plain
        } else {
            match self.next() {
                Some(':') => Kind::Plain,
                Some('>') => Kind::Atomic,
                Some(mark @ ('=' | '!')) => Kind::Look { behind: false, negative: mark == '!' },
                Some('<') => match self.next() {
                    Some(mark @ ('=' | '!')) => Kind::Look { behind: true, negative: mark == '!' },
                    _ => return invalid("unknown kind of group; a name is written (?P<name>...)"),
                },
                Some('P') => match self.next() {
                    Some('<') => {
                        self.group_name(start)?;
                        Kind::Plain
                    }
                    Some('=') => {
                        return Err(PatternError::unsupported(start, "backreference"));
                    }
                    _ => return invalid("unknown kind of group"),
                },
                Some('#') => loop {
                    match self.next() {
                        Some(')') => return Ok(None),
                        Some(_) => {}
                        None => return invalid("a comment is not closed"),
                    }
                },
                Some('(') => return Err(PatternError::unsupported(start, "conditional")),
                Some(letter) if "aiLmsux-".contains(letter) => {
                    self.at -= 1;
                    if self.inline_flags(start)? {
                        Kind::Plain
                    } else if allowed {
                        return Ok(None);
                    } else {
                        let message = "flags of the whole pattern must stand at its beginning; \
                                       (?flags:...) holds within a group";
                        return invalid(message);
                    }
                }
                _ => return invalid("unknown kind of group"),
            }
        };
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(PatternError::too_large(start, NESTED_GROUPS, MAX_NESTING));
        }
        let inner = Box::new(self.alternation()?);
        self.nesting -= 1;
        self.flags = outside;
        if !self.eat(')') {
            return invalid("a group is not closed");
        }
        Ok(Some(match kind {
            // In a group of its own, what cannot be repeated otherwise can.
            Kind::Plain => Tree::Concat(vec![*inner]),
            Kind::Atomic => Tree::Atomic { inner, offset: start },
            Kind::Look { behind, negative } => {
                let (low, high) = inner.width();
                if behind && low != high {
                    return invalid("a lookbehind must have a fixed width");
                }
                Tree::Look { inner, behind, negative, offset: start }
            }
        }))
    }

    /// The name of a group with its `>`, past the `<`.
    fn group_name(&mut self, start: usize) -> Result<(), PatternError> {
        let mut name = String::new();
        loop {
            match self.next() {
                Some('>') => break,
                Some(character) => name.push(character),
                None => {
                    return Err(PatternError::invalid(start, "the name of a group is not closed"))
                }
            }
        }
        let mut letters = name.chars();
        let first = letters.next().is_some_and(|c| c.is_alphabetic() || c == '_');
        if !first || !letters.all(|c| c.is_alphanumeric() || c == '_') {
            return Err(PatternError::invalid(start, format!("{name:?} cannot name a group")));
        }
        self.groups.count += 1;
        if !self.groups.names.insert(name.clone()) {
            let message = format!("two groups have the name {name:?}");
            return Err(PatternError::invalid(start, message));
        }
        Ok(())
    }

    /// Flags, with what ends them. False if that is the parenthesis: they are for the whole pattern.
    fn inline_flags(&mut self, start: usize) -> Result<bool, PatternError> {
        let invalid = |message: &str| Err(PatternError::invalid(start, message));
        let (mut on, mut off) = (String::new(), String::new());
        let mut turned_off = false;
        let ended = loop {
            match self.next() {
                Some(end @ (':' | ')')) => break end,
                Some('-') if !turned_off => turned_off = true,
                Some('L') => return invalid("the flag L is for bytes, not for text"),
                Some(flag) if "aimsux".contains(flag) => {
                    (if turned_off { &mut off } else { &mut on }).push(flag);
                }
                Some(_) => return invalid("unknown flag; the flags are a, i, m, s, u and x"),
                None => return invalid("flags are not closed"),
            }
        };
        if turned_off && (off.is_empty() || ended == ')') {
            return invalid("flags can be turned off in a group only, as in (?-i:...)");
        }
        let has = |letters: &str, flag: char| letters.contains(flag);
        if (has(&on, 'a') && has(&on, 'u')) || has(&off, 'a') || has(&off, 'u') {
            return invalid("the flags a and u exclude each other and cannot be turned off");
        }
        if on.chars().any(|flag| has(&off, flag)) {
            return invalid("a flag is turned on and off");
        }
        if ended == ')' && has(&on, 'u') && self.flags.ascii
            || ended == ')' && has(&on, 'a') && self.options.has('u')
        {
            return invalid("the flags a and u exclude each other");
        }
        let was = self.flags;
        let now = |flag: char, before: bool| (before || has(&on, flag)) && !has(&off, flag);
        self.flags = PythonFlags {
            ascii: if has(&on, 'u') { false } else { now('a', was.ascii) },
            ignore_case: now('i', was.ignore_case),
            multi_line: now('m', was.multi_line),
            dot_all: now('s', was.dot_all),
            verbose: now('x', was.verbose),
        };
        Ok(ended == ':')
    }
}
