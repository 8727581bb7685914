//! `printf`: directives, and the arguments that they take.

use super::print::{Flags, Printer};
use super::sink::Sink;
use crate::template::value::Value;

/// Greatest width and precision that Go accepts.
const NUMBER_MAX: i64 = 1_000_000;

struct Directives<'a> {
    format: &'a str,
    /// Offset of the next byte.
    at: usize,
    values: &'a [Value],
    next: usize,
    /// Whether an argument was named by its number.
    is_reordered: bool,
    /// Whether all numbers of the directive are those of arguments.
    is_good: bool,
}

pub fn printf(format: &str, values: &[Value], sink: &mut Sink) {
    let mut directives =
        Directives { format, at: 0, values, next: 0, is_reordered: false, is_good: true };
    while !sink.is_full() {
        let rest = directives.rest();
        let Some(found) = rest.find('%') else {
            sink.push(rest);
            break;
        };
        sink.push(&rest[..found]);
        directives.at += found + 1;
        if !directives.one(sink) {
            break;
        }
    }
    if directives.is_reordered || directives.next >= values.len() {
        return;
    }
    sink.push("%!(EXTRA ");
    for (place, value) in values[directives.next..].iter().enumerate() {
        if sink.is_full() {
            return;
        }
        sink.push(if place > 0 { ", " } else { "" });
        if !matches!(value, Value::None) {
            sink.push(value.type_name());
            sink.push("=");
        }
        Printer::new(sink, Flags::default()).argument(value, 'v');
    }
    sink.push(")");
}

impl<'a> Directives<'a> {
    /// Formats one directive, behind its percent sign; returns whether the format goes on.
    fn one(&mut self, sink: &mut Sink) -> bool {
        self.is_good = true;
        let mut flags = self.flags();
        let mut is_after_index = self.index();
        if self.skip('*') {
            flags.width = self.number_of_argument();
            if flags.width.is_none() {
                sink.push("%!(BADWIDTH)");
            }
            if flags.width.is_some_and(|width| width < 0) {
                flags.width = flags.width.map(i64::abs);
                flags.minus = true;
                flags.zero = false;
            }
            is_after_index = false;
        } else {
            flags.width = self.number();
            // A width stands before the number of the argument.
            self.is_good &= !(is_after_index && flags.width.is_some());
        }
        if self.rest().len() > 1 && self.skip('.') {
            self.is_good &= !is_after_index;
            is_after_index = self.index();
            if self.skip('*') {
                let number = self.number_of_argument();
                flags.precision = number.filter(|precision| *precision >= 0);
                if flags.precision.is_none() {
                    sink.push("%!(BADPREC)");
                }
                is_after_index = false;
            } else {
                flags.precision = Some(self.number().unwrap_or(0));
            }
        }
        if !is_after_index {
            self.index();
        }
        let Some(verb) = self.rest().chars().next() else {
            sink.push("%!(NOVERB)");
            return false;
        };
        self.at += verb.len_utf8();
        let complain = |sink: &mut Sink, text: &str| {
            sink.push("%!");
            sink.push_char(verb);
            sink.push(text);
        };
        match self.values.get(self.next) {
            _ if verb == '%' => sink.push("%"),
            _ if !self.is_good => complain(sink, "(BADINDEX)"),
            None => complain(sink, "(MISSING)"),
            Some(value) => {
                // `%w` is for errors of Go, and wrong here; but its flags are read alike.
                if matches!(verb, 'v' | 'w') {
                    (flags.sharp_v, flags.sharp) = (flags.sharp, false);
                    (flags.plus_v, flags.plus) = (flags.plus, false);
                }
                Printer::new(sink, flags).argument(value, verb);
                self.next += 1;
            }
        }
        true
    }

    fn flags(&mut self) -> Flags {
        let mut flags = Flags::default();
        while let Some(flag) = self.rest().bytes().next() {
            match flag {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => break,
            }
            self.at += 1;
        }
        flags
    }

    /// Reads the number of an argument, such as `[2]`; returns whether it is a number.
    fn index(&mut self) -> bool {
        if !self.rest().starts_with('[') {
            return false;
        }
        self.is_reordered = true;
        let end = if self.rest().len() < 3 { None } else { self.rest().find(']') };
        let Some(end) = end else {
            self.at += 1;
            self.is_good = false;
            return false;
        };
        let digits = &self.rest()[1..end];
        self.at += end + 1;
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse::<i64>().ok().filter(|number| is_number && *number <= NUMBER_MAX);
        let place = number.and_then(|number| usize::try_from(number - 1).ok());
        match place.filter(|place| *place < self.values.len()) {
            Some(place) => self.next = place,
            None => self.is_good = false,
        }
        number.is_some()
    }

    /// Reads a width or precision. One that is too large ends the format, as in Go.
    fn number(&mut self) -> Option<i64> {
        let mut number = None;
        while let Some(digit) = self.rest().bytes().next().filter(u8::is_ascii_digit) {
            if number.is_some_and(|number| number > NUMBER_MAX) {
                self.at = self.format.len();
                return None;
            }
            number = Some(number.unwrap_or(0) * 10 + i64::from(digit - b'0'));
            self.at += 1;
        }
        number
    }

    /// Takes an argument as a width or precision.
    fn number_of_argument(&mut self) -> Option<i64> {
        let value = self.values.get(self.next)?;
        self.next += 1;
        value.integer().filter(|number| (-NUMBER_MAX..=NUMBER_MAX).contains(number))
    }

    fn skip(&mut self, letter: char) -> bool {
        let found = self.rest().starts_with(letter);
        self.at += if found { letter.len_utf8() } else { 0 };
        found
    }

    fn rest(&self) -> &'a str {
        &self.format[self.at..]
    }
}
