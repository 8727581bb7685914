//! Values of a series.

use super::cursor::{Cursor, is_name_part};
use super::histogram;
use super::number::{signed, unsigned, whole};
use super::sequence::{Run, Sequence};
use super::{NotationError, VALUES_MAX};
use tidepool_model::STALE_NAN;

pub fn read(cursor: &mut Cursor<'_>) -> Result<Sequence, NotationError> {
    let mut values = Sequence::default();
    while cursor.peek().is_some() {
        if !cursor.skip_blanks() {
            return Err(unexpected(cursor));
        }
        if cursor.peek().is_none() {
            break;
        }
        let run = item(cursor)?;
        if values.cost().saturating_add(run.cost()) > VALUES_MAX {
            return Err(cursor.error(format!("more than {VALUES_MAX} values")));
        }
        values.push(run);
    }
    Ok(values)
}

fn item(cursor: &mut Cursor<'_>) -> Result<Run, NotationError> {
    if cursor.take('_') {
        let count = times(cursor)?;
        return Ok(Run::Omitted { count: count.unwrap_or(1) });
    }
    if cursor.rest().starts_with("{{") {
        return histograms(cursor);
    }
    let first = match cursor.rest().strip_prefix("stale") {
        Some(rest) if !rest.starts_with(|next| next == ':' || is_name_part(next)) => {
            cursor.skip("stale".len());
            STALE_NAN
        }
        _ => signed(cursor)?,
    };
    let step = match cursor.peek() {
        Some('+') => {
            cursor.take('+');
            Some(unsigned(cursor)?)
        }
        Some('-') => {
            cursor.take('-');
            Some(-unsigned(cursor)?)
        }
        _ => None,
    };
    match (times(cursor)?, step) {
        (Some(more), step) => Ok(Run::Floats { first, step, more }),
        (None, None) => Ok(Run::Floats { first, step, more: 0 }),
        (None, Some(_)) => Err(unexpected(cursor)),
    }
}

fn histograms(cursor: &mut Cursor<'_>) -> Result<Run, NotationError> {
    let first = Box::new(histogram::read(cursor)?);
    let sign = match cursor.peek() {
        Some('+') => 1.0,
        Some('-') => -1.0,
        _ => {
            let more = times(cursor)?.unwrap_or(0);
            return Ok(Run::Histograms { first, step: None, more });
        }
    };
    cursor.skip(1);
    if !cursor.rest().starts_with("{{") {
        return Err(unexpected(cursor));
    }
    let step = histogram::read(cursor)?;
    let more = times(cursor)?.ok_or_else(|| unexpected(cursor))?;
    if more > 0 {
        // What fails, fails for the first sum.
        let mut sum = (*first).clone();
        sum.combine(&step, sign).map_err(|error| cursor.error(error.to_string()))?;
    }
    Ok(Run::Histograms { first, step: Some((Box::new(step), sign)), more })
}

/// Takes `x` and a number.
fn times(cursor: &mut Cursor<'_>) -> Result<Option<u64>, NotationError> {
    match cursor.take('x') {
        true => whole(cursor).map(Some),
        false => Ok(None),
    }
}

fn unexpected(cursor: &Cursor<'_>) -> NotationError {
    match cursor.peek() {
        None => cursor.error("unexpected end of input in series values"),
        Some(letter) => cursor.error(format!("unexpected {letter:?} in series values")),
    }
}
