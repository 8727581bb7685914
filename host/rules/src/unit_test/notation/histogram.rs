//! A histogram: `{{schema:1 sum:-0.3 count:3.1 buckets:[5 10] offset:-3}}`.

use super::NotationError;
use super::cursor::{Cursor, is_blank, is_name_start};
use super::number::{of_histogram, whole};
use crate::unit_test::histogram::{Buckets, Histogram, ResetHint};

/// Reads a histogram, with its braces.
pub fn read(cursor: &mut Cursor<'_>) -> Result<Histogram, NotationError> {
    cursor.take_text("{{");
    let mut histogram = Histogram::default();
    let (mut positive, mut negative) = (Side::default(), Side::default());
    let mut keys = Vec::new();
    let mut is_first = true;
    loop {
        let has_blanks = cursor.skip_blanks();
        if cursor.take_text("}}") {
            break;
        }
        // Blanks stand between items, and before the end.
        if has_blanks == is_first {
            return Err(unexpected(cursor));
        }
        is_first = false;
        let key = cursor.take_while(is_name_start).to_ascii_lowercase();
        if !cursor.take(':') {
            return Err(cursor.error(format!("bad histogram descriptor found: {key:?}")));
        }
        match key.as_str() {
            "schema" => histogram.schema = integer(cursor)?,
            "sum" => histogram.sum = of_histogram(cursor, true)?,
            "count" => histogram.count = of_histogram(cursor, true)?,
            "z_bucket" => histogram.zero_count = of_histogram(cursor, true)?,
            "z_bucket_w" => histogram.zero_threshold = of_histogram(cursor, false)?,
            "custom_values" => histogram.custom_values = list(cursor)?,
            "buckets" => positive.counts = list(cursor)?,
            "n_buckets" => negative.counts = list(cursor)?,
            "offset" => positive.offset = integer(cursor)?,
            "n_offset" => negative.offset = integer(cursor)?,
            "counter_reset_hint" => {
                let name = cursor.take_while(is_name_start);
                histogram.reset_hint = ResetHint::of_name(name)
                    .ok_or_else(|| cursor.error(format!("bad counter_reset_hint {name:?}")))?;
            }
            _ => return Err(cursor.error(format!("bad histogram descriptor found: {key:?}"))),
        }
        if keys.contains(&key) {
            return Err(cursor.error(format!("duplicate key {key:?} in histogram")));
        }
        keys.push(key);
    }
    histogram.positive = positive.buckets(cursor)?;
    histogram.negative = negative.buckets(cursor)?;
    Ok(histogram)
}

#[derive(Default)]
struct Side {
    offset: i32,
    counts: Vec<f64>,
}

impl Side {
    fn buckets(self, cursor: &Cursor<'_>) -> Result<Buckets, NotationError> {
        let mut buckets = Buckets::new();
        for (place, count) in self.counts.into_iter().enumerate() {
            let index = i32::try_from(i64::from(self.offset).saturating_add(place as i64))
                .map_err(|_| cursor.error("the index of a bucket does not fit 32 bits"))?;
            buckets.insert(index, count);
        }
        Ok(buckets)
    }
}

fn integer(cursor: &mut Cursor<'_>) -> Result<i32, NotationError> {
    let sign = if cursor.take('-') { -1 } else { 1 };
    let number =
        i64::try_from(whole(cursor)?).ok().and_then(|number| (sign * number).try_into().ok());
    number.ok_or_else(|| cursor.error("the number does not fit 32 bits"))
}

fn list(cursor: &mut Cursor<'_>) -> Result<Vec<f64>, NotationError> {
    if !cursor.take('[') {
        return Err(unexpected(cursor));
    }
    let mut numbers = vec![of_histogram(cursor, true)?];
    loop {
        let has_blanks = cursor.skip_blanks();
        if cursor.take(']') {
            return Ok(numbers);
        }
        if !has_blanks {
            return Err(unexpected(cursor));
        }
        numbers.push(of_histogram(cursor, true)?);
    }
}

fn unexpected(cursor: &Cursor<'_>) -> NotationError {
    match cursor.peek() {
        None => cursor.error("unexpected end of input in a histogram"),
        Some(letter) if is_blank(letter) => cursor.error("unexpected blank in a histogram"),
        Some(letter) => cursor.error(format!("unexpected {letter:?} in a histogram")),
    }
}
