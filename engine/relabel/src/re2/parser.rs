//! Parser of an expression: one pass, with a stack of open groups.

use super::class::Classes;
use super::cursor::Cursor;
use super::escape::escape;
use super::{Dot, NESTING_MAX, Parsed, REPEATS_MAX, SyntaxError, Wrong};
use regex_syntax::hir;
use regex_syntax::hir::{Capture, Class, Hir, Look, Repetition};

/// Flags that `(?imsU)` sets until the end of the group.
#[derive(Clone, Copy, Debug)]
struct Flags {
    folds_case: bool,
    is_multiline: bool,
    dot: Dot,
    is_lazy: bool,
}

/// A part of a sequence that a repetition may follow.
#[derive(Debug)]
struct Part {
    hir: Hir,
    /// Largest product of the counts of nested repetitions within the part.
    repeats: u32,
    height: u32,
}

/// An open group, or the whole expression.
#[derive(Debug)]
struct Group {
    /// Flags outside of the group.
    flags: Flags,
    /// Number of the group, if it captures.
    number: Option<u32>,
    branches: Vec<Hir>,
    parts: Vec<Part>,
    /// Characters after `parts`; each character is a part of its own.
    text: String,
    repeats: u32,
    height: u32,
}

pub(super) struct Parser<'e> {
    cursor: Cursor<'e>,
    flags: Flags,
    /// Enclosing groups; the first is the whole expression.
    outer: Vec<Group>,
    group: Group,
    captures: u32,
    names: Vec<(String, usize)>,
    classes: Classes,
    /// Start of the repetition that was just read, for `a**`.
    repetition: Option<usize>,
}

impl<'e> Parser<'e> {
    pub(super) fn new(expression: &'e str, dot: Dot) -> Parser<'e> {
        let flags = Flags { folds_case: false, is_multiline: false, dot, is_lazy: false };
        Parser {
            cursor: Cursor::new(expression),
            flags,
            outer: Vec::new(),
            group: Group::new(flags, None),
            captures: 0,
            names: Vec::new(),
            classes: Classes::default(),
            repetition: None,
        }
    }

    pub(super) fn parsed(mut self) -> Result<Parsed, SyntaxError> {
        loop {
            let start = self.cursor.at();
            let Some(letter) = self.cursor.next() else { break };
            // Only a repetition directly after another repetition is an error.
            let before = self.repetition.take();
            match letter {
                '(' => self.open(start)?,
                ')' => self.close()?,
                '|' => self.group.end_branch(),
                '^' if self.flags.is_multiline => self.look(Look::StartLF),
                '^' => self.look(Look::Start),
                '$' if self.flags.is_multiline => self.look(Look::EndLF),
                '$' => self.look(Look::End),
                '.' => self.push(match self.flags.dot {
                    Dot::Any => Hir::dot(hir::Dot::AnyChar),
                    Dot::NoNewline => Hir::dot(hir::Dot::AnyCharExceptLF),
                }),
                '[' => {
                    let folds = self.flags.folds_case;
                    let class = self.classes.bracketed(&mut self.cursor, start, folds)?;
                    self.push(Hir::class(Class::Unicode(class)));
                }
                '*' => self.repeat(start, before, 0, None)?,
                '+' => self.repeat(start, before, 1, None)?,
                '?' => self.repeat(start, before, 0, Some(1))?,
                '{' => match self.counts(start)? {
                    Some((min, max)) => self.repeat(start, before, min, max)?,
                    None => self.character('{'.into())?,
                },
                '\\' => self.escaped(start)?,
                letter => self.character(letter.into())?,
            }
        }
        if !self.outer.is_empty() {
            return Err(SyntaxError::new(Wrong::GroupNotClosed, self.cursor.whole()));
        }
        let (part, whole) = (self.group.ended(), self.cursor.whole());
        match part.height > NESTING_MAX {
            true => Err(SyntaxError::new(Wrong::TooDeep, whole)),
            false => Ok(Parsed { hir: part.hir, names: self.names }),
        }
    }

    fn push(&mut self, hir: Hir) {
        self.group.push(Part { hir, repeats: 1, height: 1 });
    }

    fn look(&mut self, look: Look) {
        self.push(Hir::look(look));
    }

    fn character(&mut self, code: u32) -> Result<(), SyntaxError> {
        // Letters are collected to one literal, which is smaller than a class for each.
        match char::from_u32(code).filter(|_| !self.flags.folds_case) {
            Some(letter) => self.group.text.push(letter),
            None => {
                let class = self.classes.character(code, self.flags.folds_case)?;
                self.push(Hir::class(Class::Unicode(class)));
            }
        }
        Ok(())
    }

    fn escaped(&mut self, start: usize) -> Result<(), SyntaxError> {
        let look = match self.cursor.peek() {
            Some('A') => Some(Look::Start),
            Some('z') => Some(Look::End),
            Some('b') => Some(Look::WordAscii),
            Some('B') => Some(Look::WordAsciiNegate),
            _ => None,
        };
        if let Some(look) = look {
            self.cursor.next();
            self.look(look);
            return Ok(());
        }
        // Without `\E` the quotation extends to the end, as in Go.
        if self.cursor.skip("Q") {
            let quoted = match self.cursor.until("\\E") {
                Some(quoted) => quoted,
                None => self.cursor.take_rest(),
            };
            return quoted.chars().try_for_each(|letter| self.character(letter.into()));
        }
        let folds = self.flags.folds_case;
        if let Some(class) = self.classes.escaped(&mut self.cursor, start, folds)? {
            self.push(Hir::class(Class::Unicode(class)));
            return Ok(());
        }
        let code = escape(&mut self.cursor, start)?;
        self.character(code)
    }

    /// Opens a group, or sets flags of the current group.
    fn open(&mut self, start: usize) -> Result<(), SyntaxError> {
        if !self.cursor.skip("?") {
            self.captures += 1;
            return self.open_group(Some(self.captures));
        }
        // As in Go, a bracket at the end of the expression does not begin a name.
        let is_named = self.cursor.rest().len() > 1 && self.cursor.skip("<")
            || self.cursor.rest().len() > 2 && self.cursor.skip("P<");
        if !is_named {
            return self.set_flags(start);
        }
        let Some(name) = self.cursor.until(">") else {
            self.cursor.take_rest();
            return Err(self.cursor.wrong_since(start, Wrong::GroupName));
        };
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_of_name) {
            return Err(self.cursor.wrong_since(start, Wrong::GroupName));
        }
        self.captures += 1;
        self.names.push((name.to_owned(), self.captures as usize));
        self.open_group(Some(self.captures))
    }

    /// Parses flags such as `(?i)`, `(?i-s)`, `(?m:`.
    fn set_flags(&mut self, start: usize) -> Result<(), SyntaxError> {
        let mut flags = self.flags;
        let mut sets = true;
        // A hyphen must be followed by a flag.
        let mut is_complete = true;
        while let Some(letter) = self.cursor.next() {
            match letter {
                'i' => flags.folds_case = sets,
                'm' => flags.is_multiline = sets,
                's' => flags.dot = if sets { Dot::Any } else { Dot::NoNewline },
                'U' => flags.is_lazy = sets,
                '-' if sets => {
                    (sets, is_complete) = (false, false);
                    continue;
                }
                ':' if is_complete => {
                    self.open_group(None)?;
                    self.flags = flags;
                    return Ok(());
                }
                ')' if is_complete => {
                    self.flags = flags;
                    return Ok(());
                }
                _ => break,
            }
            is_complete = true;
        }
        Err(self.cursor.wrong_since(start, Wrong::PerlSyntax))
    }

    fn open_group(&mut self, number: Option<u32>) -> Result<(), SyntaxError> {
        // Each open group takes two levels, because it may be in a sequence.
        if self.outer.len() >= NESTING_MAX as usize {
            return Err(SyntaxError::new(Wrong::TooDeep, self.cursor.whole()));
        }
        let outer = std::mem::replace(&mut self.group, Group::new(self.flags, number));
        self.outer.push(outer);
        Ok(())
    }

    fn close(&mut self) -> Result<(), SyntaxError> {
        let Some(outer) = self.outer.pop() else {
            return Err(SyntaxError::new(Wrong::GroupNotOpened, self.cursor.whole()));
        };
        let group = std::mem::replace(&mut self.group, outer);
        // Flags set within a group end with it.
        self.flags = group.flags;
        let part = group.ended();
        if part.height > NESTING_MAX {
            return Err(SyntaxError::new(Wrong::TooDeep, self.cursor.whole()));
        }
        self.group.push(part);
        Ok(())
    }

    /// Repeats the last part. The operator begins at `start`, and a repetition operator directly
    /// before it, which is an error, at `before`.
    fn repeat(
        &mut self,
        start: usize,
        before: Option<usize>,
        min: u32,
        max: Option<u32>,
    ) -> Result<(), SyntaxError> {
        // Read before any error, so that errors show the whole operator.
        let is_lazy = self.cursor.skip("?") != self.flags.is_lazy;
        if let Some(before) = before {
            return Err(self.cursor.wrong_since(before, Wrong::NestedRepetition));
        }
        let wrong = |wrong| Err(self.cursor.wrong_since(start, wrong));
        let Some(part) = self.group.pop() else { return wrong(Wrong::NothingToRepeat) };
        let repeats = match max {
            // A part that never matches may contain any number of repetitions.
            Some(0) => 1,
            max => part.repeats.saturating_mul(max.unwrap_or(min).max(1)),
        };
        if repeats > REPEATS_MAX {
            return wrong(Wrong::RepeatCount);
        }
        let height = part.height + 1;
        if height > NESTING_MAX {
            return wrong(Wrong::TooDeep);
        }
        let hir = Hir::repetition(Repetition { min, max, greedy: !is_lazy, sub: part.hir.into() });
        self.group.push(Part { hir, repeats, height });
        self.repetition = Some(start);
        Ok(())
    }

    /// Parses `{2}`, `{2,}` or `{2,3}` after the brace at `start`. Returns `None` and reads nothing
    /// if the brace is a literal.
    fn counts(&mut self, start: usize) -> Result<Option<(u32, Option<u32>)>, SyntaxError> {
        let mut ahead = self.cursor.clone();
        let Some(min) = count(&mut ahead) else { return Ok(None) };
        let max = match ahead.skip(",") {
            false => Some(min),
            true if ahead.peek() == Some('}') => None,
            true => match count(&mut ahead) {
                Some(max) => Some(max),
                None => return Ok(None),
            },
        };
        if !ahead.skip("}") {
            return Ok(None);
        }
        self.cursor = ahead;
        // Counts above the limit are errors, not text: the syntax is that of a repetition.
        if min > REPEATS_MAX || max.is_some_and(|max| max > REPEATS_MAX || max < min) {
            return Err(self.cursor.wrong_since(start, Wrong::RepeatCount));
        }
        Ok(Some((min, max)))
    }
}

/// Parses a decimal number without leading zeros; too large numbers saturate.
fn count(cursor: &mut Cursor<'_>) -> Option<u32> {
    let mut digit = || {
        let digit = cursor.peek()?.to_digit(10)?;
        cursor.next();
        Some(digit)
    };
    let mut count = digit()?;
    let is_zero = count == 0;
    while let Some(digit) = digit() {
        if is_zero {
            return None;
        }
        count = count.saturating_mul(10).saturating_add(digit);
    }
    Some(count)
}

impl Group {
    fn new(flags: Flags, number: Option<u32>) -> Group {
        let (branches, parts) = (Vec::new(), Vec::new());
        Group { flags, number, branches, parts, text: String::new(), repeats: 1, height: 1 }
    }

    fn push(&mut self, part: Part) {
        self.end_text();
        self.parts.push(part);
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            let hir = Hir::literal(std::mem::take(&mut self.text).into_bytes());
            self.parts.push(Part { hir, repeats: 1, height: 1 });
        }
    }

    /// Removes the last part, which may be a single character of a text.
    fn pop(&mut self) -> Option<Part> {
        let Some(letter) = self.text.pop() else { return self.parts.pop() };
        let hir = Hir::literal(letter.to_string().into_bytes());
        Some(Part { hir, repeats: 1, height: 1 })
    }

    fn end_branch(&mut self) {
        self.end_text();
        // A single part needs no sequence around it, which would be a level.
        let level = u32::from(self.parts.len() > 1);
        let parts = std::mem::take(&mut self.parts);
        for part in &parts {
            self.repeats = self.repeats.max(part.repeats);
            self.height = self.height.max(part.height + level);
        }
        self.branches.push(Hir::concat(parts.into_iter().map(|part| part.hir).collect()));
    }

    fn ended(mut self) -> Part {
        self.end_branch();
        let levels = u32::from(self.branches.len() > 1) + u32::from(self.number.is_some());
        let hir = Hir::alternation(self.branches);
        let hir = match self.number {
            Some(index) => Hir::capture(Capture { index, name: None, sub: hir.into() }),
            None => hir,
        };
        Part { hir, repeats: self.repeats, height: self.height + levels }
    }
}
