//! Long chains of operators are evaluated in loops, independent of the stack.

use std::rc::Rc;
use tidepool_promql::eval::Query;
use tidepool_promql::model::{FloatPoint, Labels, Samples};
use tidepool_promql::plan::Options;
use tidepool_promql::source::{Selection, SeriesSet, Source, SourceError};
use tidepool_promql::syntax::{ParserOptions, parse};

/// One series for each name, whose value is the number in the name: `m7` is 7.
struct Store;

impl Source for Store {
    fn select(&self, selection: &Selection) -> Result<Box<dyn SeriesSet>, SourceError> {
        let name = &selection.matchers[0].value;
        // No series has a label that a matcher asks for.
        let rest = (selection.matchers.len() == 1).then(|| name.clone());
        Ok(Box::new(One { value: name[1..].parse().unwrap_or(f64::NAN), rest, is_read: true }))
    }
}

struct One {
    rest: Option<String>,
    value: f64,
    is_read: bool,
}

impl SeriesSet for One {
    fn next(&mut self) -> Result<Option<Labels>, SourceError> {
        self.is_read = false;
        let name = self.rest.take();
        Ok(name.map(|name| Labels::new([("__name__", name.clone()), ("i", name)])))
    }

    fn read(&mut self, samples: &mut Samples) -> Result<bool, SourceError> {
        if std::mem::replace(&mut self.is_read, true) {
            return Ok(false);
        }
        samples.floats.push(FloatPoint { time_ms: 60_000, value: self.value });
        Ok(true)
    }
}

/// Number of series and sum of all values of an answer, or the error.
fn answer(text: &str, options: Options) -> Result<(usize, f64), String> {
    let expr = parse(text, &ParserOptions::all()).map_err(|error| error.to_string())?;
    let query = Query::new(&expr, options).map_err(|error| error.to_string())?;
    drop(expr);
    let evaluation = query.evaluate(Rc::new(Store)).map_err(|error| error.to_string())?;
    let (mut series, mut sum) = (0, 0.0);
    for one in evaluation {
        let one = one.map_err(|error| error.to_string())?;
        series += 1;
        sum += one.samples.floats.iter().map(|point| point.value).sum::<f64>();
    }
    Ok((series, sum))
}

fn chain(terms: usize, term: impl Fn(usize) -> String, op: &str) -> String {
    (0..terms).map(term).collect::<Vec<_>>().join(op)
}

#[test]
fn chains_of_thousands_of_terms_are_answered() {
    let run = || {
        const TERMS: usize = 5_000;
        let names = |number: usize| format!("m{number}");
        let one = |_: usize| "1".to_owned();
        let same = |_: usize| "m7".to_owned();
        let sum = (TERMS * (TERMS - 1) / 2) as f64;
        let terms = TERMS as f64;
        for (text, expected) in [
            (chain(TERMS, one, "+"), (1, terms)),
            (format!("m7 + {}", chain(TERMS, one, "+")), (1, terms + 7.0)),
            (format!("{} + m7", chain(TERMS, one, "+")), (1, terms + 7.0)),
            (format!("time() + {}", chain(TERMS, one, "+")), (1, terms + 60.0)),
            (chain(TERMS, names, " or "), (TERMS, sum)),
            (chain(TERMS, names, " or on (i) "), (TERMS, sum)),
            (chain(TERMS, names, " + on () "), (1, sum)),
            (chain(TERMS, names, " and on () "), (1, 0.0)),
            (chain(TERMS, same, " or "), (1, 7.0)),
            (chain(TERMS, same, " + "), (1, terms * 7.0)),
            (chain(TERMS, |number| format!("sum(m{number})"), " + "), (1, sum)),
            (format!("{} unless m0 or m0 unless m0", chain(TERMS, names, " or ")), (TERMS, sum)),
        ] {
            let short: String = text.chars().take(40).collect();
            assert_eq!(answer(&text, Options::instant(60_000)), Ok(expected), "{short}");
            let range = answer(&text, Options::range(60_000, 120_000, 60_000));
            assert_eq!(range.map(|it| it.0), Ok(expected.0), "{short}");
        }
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(run);
    thread.expect("a thread").join().expect("an end");
}

#[test]
fn terms_of_a_chain_keep_their_order_and_their_keys() {
    // A key of an earlier term hides the later ones, but not those of its own term.
    let keep = |text: &str| answer(text, Options::instant(60_000));
    assert_eq!(keep("m1 or on () m2 or on () m4"), Ok((1, 1.0)));
    assert_eq!(keep("m1 or on (i) m2 or on () m4"), Ok((2, 3.0)));
    assert_eq!(keep("m1 or m2 unless m2 or m4"), Ok((2, 5.0)));
    assert_eq!(keep("1 - 2 - m4 - 3"), Ok((1, -8.0)));
    assert_eq!(keep("8 - m4 - 2 - 1"), Ok((1, 1.0)));
    assert_eq!(keep("m8 - on () m4 - on () m1"), Ok((1, 3.0)));
    assert_eq!(keep("m8 - on () group_right m4 - on () group_right m1"), Ok((1, 3.0)));
    assert_eq!(keep("m8 @ 60 - on () m4 @ 60 - on () m1"), Ok((1, 3.0)));
}

#[test]
fn chains_beyond_the_limit_are_refused_with_their_place() {
    let text = chain(20_000, |_| "1".to_owned(), "+");
    let error = answer(&text, Options::instant(0)).expect_err("too long");
    assert_eq!(error, "1:1: parse error: more than 10000 operators follow one another");
}
