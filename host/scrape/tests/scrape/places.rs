//! Places of series in the cache, which change when it gives memory back.

use crate::append::{Target, options};
use crate::store::{Stored, marker, stored};

/// Makes a page with so many series of a family, each with a value of its own.
fn page(family: &str, count: usize) -> Vec<(String, f64)> {
    let value = |number: usize| (family.len() * 10_000 + number) as f64;
    (0..count).map(|number| (format!("{family}{{n=\"{number}\"}}"), value(number))).collect()
}

fn sorted(mut samples: Vec<Stored>) -> Vec<Stored> {
    samples.sort_by(|a, b| a.series.cmp(&b.series));
    samples
}

/// Regression: a cache shrank at the end of a scrape, and samples were stored under the labels of
/// other series, or not at all, because the batch still referred to the old places.
#[tokio::test]
async fn series_keep_their_labels_while_the_cache_shrinks() {
    let one = page("a", 1);
    let pages = [
        one.clone(),
        [one.clone(), page("bb", 3000)].concat(),
        // New, behind 3000 places that become free with it.
        page("ccc", 1),
        page("dddd", 900),
        [page("dddd", 900), page("eeeee", 2500)].concat(),
        // From every place, some stay and some are new.
        [page("dddd", 20), page("eeeee", 40), page("ffffff", 30)].concat(),
        [page("dddd", 10), page("ffffff", 40)].concat(),
    ];
    let mut target = Target::new(options());
    let mut before: Vec<(String, f64)> = Vec::new();
    for (number, page) in pages.into_iter().enumerate() {
        let at_ms = 1000 * (number as i64 + 1);
        let body: String =
            page.iter().map(|(series, value)| format!("{series} {value}\n")).collect();
        let ended = before.iter().filter(|ended| !page.contains(ended));
        let ended = ended.map(|(series, _)| marker(series, at_ms));
        let exposed = page.iter().map(|(series, value)| stored(series, at_ms, *value));
        let expected = sorted(exposed.chain(ended).collect());
        assert_eq!(sorted(target.good(at_ms, &body).await), expected, "page {number}");
        before = page;
    }
}
