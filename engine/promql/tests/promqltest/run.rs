//! Runs statements: instant ones also with `@` at other times, and as the middle of a range.

use super::compare::{Answer, check};
use super::engine::{Evaluated, evaluate};
use super::script::{Eval, Expectation, When};
use super::store::Store;
use std::rc::Rc;
use tidepool_promql::model::Value;
use tidepool_promql::syntax::{At, Expr, ExprKind, ParserOptions, TimeShift, parse};

/// Functions that depend on the evaluation time although their arguments do not.
const TIMED: [&str; 15] = [
    "days_in_month",
    "day_of_month",
    "day_of_week",
    "day_of_year",
    "end",
    "hour",
    "minute",
    "month",
    "year",
    "predict_linear",
    "range",
    "start",
    "step",
    "time",
    "timestamp",
];

type Checked = Result<(), String>;

pub fn run(store: &Rc<Store>, eval: &Eval) -> Checked {
    let When::Instant(time) = eval.when else {
        return run_range(store, eval);
    };
    run_instant(store, eval, &eval.text, time)?;
    let Some(text) = with_fixed_time(&eval.text, time) else { return Ok(()) };
    let times = match time {
        0 => vec![-1000, 0, 1000],
        time => vec![-10 * time, 0, time / 5, time, 10 * time],
    };
    for time in times {
        run_instant(store, eval, &text, time)
            .map_err(|error| format!("as {text} at {time}: {error}"))?;
    }
    Ok(())
}

fn run_range(store: &Rc<Store>, eval: &Eval) -> Checked {
    let evaluated = match (evaluate(store, &eval.text, eval.when), &eval.fails) {
        (Err(error), Some(wanted)) => return check_failure(&error, wanted),
        (Err(error), None) => return Err(format!("fails: {error}")),
        (Ok(_), Some(_)) => return Err("does not fail".into()),
        (Ok(evaluated), None) => evaluated,
    };
    check_annotations(eval, &evaluated)?;
    check(eval, &evaluated.answer)
}

fn run_instant(store: &Rc<Store>, eval: &Eval, text: &str, time: i64) -> Checked {
    let evaluated = match (evaluate(store, text, When::Instant(time)), &eval.fails) {
        (Err(error), Some(wanted)) => return check_failure(&error, wanted),
        (Err(error), None) => return Err(format!("fails: {error}")),
        (Ok(_), Some(_)) => return Err("does not fail".into()),
        (Ok(evaluated), None) => evaluated,
    };
    check_annotations(eval, &evaluated)?;
    check(eval, &evaluated.answer)?;
    let is_range_fit = matches!(evaluated.answer, Answer::Vector(_) | Answer::Scalar(_));
    let is_timed = ["start()", "end()", "range()", "step()"].iter().any(|it| text.contains(it));
    if !is_range_fit || is_timed {
        return Ok(());
    }
    let when = When::Range(time - 60_000, time + 60_000, 60_000);
    let ranged =
        evaluate(store, text, when).map_err(|error| format!("as a range fails: {error}"))?;
    if eval.is_ordered {
        return Ok(());
    }
    let Answer::Matrix(series) = ranged.answer else {
        return Err("as a range gives no matrix".into());
    };
    if let Some(pair) = series.windows(2).find(|pair| pair[0].labels > pair[1].labels) {
        return Err(format!("as a range gives {} before {}", pair[0].labels, pair[1].labels));
    }
    let mut vector = Vec::new();
    for series in series {
        let float = series.floats.iter().find(|(at, _)| *at == time);
        let histogram = series.histograms.iter().find(|(at, _)| *at == time);
        if let Some((_, value)) = float {
            vector.push((series.labels.clone(), Value::Float(*value)));
        }
        if let Some((_, value)) = histogram {
            vector.push((series.labels, Value::Histogram(value.clone())));
        }
    }
    let answer = match (&evaluated.answer, vector.first()) {
        (Answer::Scalar(_), Some((_, Value::Float(value)))) => Answer::Scalar(*value),
        _ => Answer::Vector(vector),
    };
    check(eval, &answer).map_err(|error| format!("as a range: {error}"))
}

fn check_failure(error: &str, wanted: &Expectation) -> Checked {
    match wanted.fits(error) {
        true => Ok(()),
        false => Err(format!("fails with another error: {error}")),
    }
}

fn check_annotations(eval: &Eval, evaluated: &Evaluated) -> Checked {
    for (kind, found, wanted, is_none) in [
        ("warning", &evaluated.warnings, &eval.warnings, eval.no_warnings),
        ("info", &evaluated.infos, &eval.infos, eval.no_infos),
    ] {
        if is_none && !found.is_empty() {
            return Err(format!("a {kind} that is not expected: {found:?}"));
        }
        if wanted.is_empty() {
            continue;
        }
        if !wanted.iter().all(|wanted| found.iter().any(|found| wanted.fits(found))) {
            return Err(format!("no {kind} that is expected; there are {found:?}"));
        }
        let foreign = found.iter().find(|found| !wanted.iter().any(|wanted| wanted.fits(found)));
        if let Some(foreign) = foreign {
            return Err(format!("a {kind} that is not expected: {foreign}"));
        }
    }
    Ok(())
}

/// Adds `@` to all selectors without a time. `None` if the value depends on the evaluation time
/// nevertheless, or if the expression does not parse, as the statement then expects.
fn with_fixed_time(text: &str, time: i64) -> Option<String> {
    let mut expr = parse(text, &ParserOptions::all()).ok()?;
    let mut is_timed = false;
    fix_time(&mut expr, time, &mut is_timed);
    (!is_timed).then(|| expr.to_string())
}

fn fix_time(expr: &mut Expr, time: i64, is_timed: &mut bool) {
    let fix = |shift: &mut TimeShift| {
        if !matches!(shift.at, Some(At::Time(_))) {
            shift.at = Some(At::Time(time));
        }
    };
    match &mut expr.kind {
        ExprKind::Number(_) | ExprKind::String(_) => {}
        ExprKind::Vector(selector) => fix(&mut selector.shift),
        ExprKind::Matrix(matrix) => fix(&mut matrix.selector.shift),
        // Selectors inside now have fixed times.
        ExprKind::Subquery(subquery) => fix(&mut subquery.shift),
        ExprKind::Unary(_, inner) | ExprKind::Paren(inner) => fix_time(inner, time, is_timed),
        ExprKind::Binary(binary) => {
            fix_time(&mut binary.lhs, time, is_timed);
            fix_time(&mut binary.rhs, time, is_timed);
        }
        ExprKind::Aggregate(aggregate) => {
            fix_time(&mut aggregate.expr, time, is_timed);
            if let Some(param) = &mut aggregate.param {
                fix_time(param, time, is_timed);
            }
        }
        ExprKind::Call(call) => {
            *is_timed |= TIMED.contains(&call.function.name);
            call.args.iter_mut().for_each(|arg| fix_time(arg, time, is_timed));
        }
    }
}
