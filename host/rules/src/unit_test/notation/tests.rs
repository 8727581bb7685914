//! Bounds. What texts mean is compared with upstream in `tests/unit_tests`.

use super::*;

#[test]
fn values_are_bounded_and_stay_runs() {
    let (_, values) = series(&format!("x 1+1x{} _ 7", VALUES_MAX - 3)).expect("a series");
    assert_eq!(values.count(), VALUES_MAX);
    for text in [
        format!("x 1x{VALUES_MAX}"),
        format!("x 1x{}", u64::MAX),
        format!("x _x{}", u64::MAX),
        "x 1x9999999 {{}}x9".to_owned(),
        // Each has three buckets.
        "x {{buckets:[1 2 3]}}x2500000".to_owned(),
        "x {{}}+{{buckets:[1 2 3]}}x2500000".to_owned(),
    ] {
        let error = series(&text).expect_err("too many");
        assert!(error.to_string().contains("more than 10000000 values"), "{text}: {error}");
    }
}

#[test]
fn hostile_texts_end_at_once() {
    let brackets = "[".repeat(1 << 20);
    for text in [
        "{".repeat(1 << 20),
        format!("x {}", "{{".repeat(1 << 20)),
        format!("x {{{{buckets:{brackets}"),
        format!("x{{a=\"{}", "\\".repeat(1 << 20)),
        format!("x {}", "1+".repeat(1 << 20)),
        format!("x {}", "9".repeat(1 << 20)),
        "x {{offset:2147483647 buckets:[1 2]}}".to_owned(),
    ] {
        assert!(series(&text).is_err());
    }
    let blanks = format!("x{}1", " ".repeat(1 << 20));
    assert_eq!(series(&blanks).expect("a series").1.count(), 1);
}
