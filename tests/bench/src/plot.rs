//! Charts as SVG: curves over a logarithmic axis, several on one sheet, and ratios as bars.
//!
//! Draws without a library, which would mostly add features that these charts do not need.

use std::fmt::Write as _;

const PANEL_WIDTH: f64 = 440.0;
const PANEL_HEIGHT: f64 = 270.0;
const COLUMNS: usize = 2;
/// Margins for texts around the curves of a panel.
const LEFT: f64 = 56.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 44.0;
/// Distinguishable with all kinds of colour vision (Okabe and Ito).
const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#555555"];
const TICKS: f64 = 4.0;
const BAR_HEIGHT: f64 = 20.0;
const BAR_LABELS_WIDTH: f64 = 540.0;
const BARS_WIDTH: f64 = 380.0;

/// Curves in one frame; the x axis begins at the least x, the y axis at zero.
#[derive(Clone, Debug)]
pub struct Panel {
    pub title: String,
    /// Title of the x axis.
    pub x_title: String,
    /// Name of each curve, and its points in ascending order of x, which is above zero.
    pub curves: Vec<(String, Vec<(f64, f64)>)>,
}

/// Ratio of one server's need to another's.
#[derive(Clone, Debug)]
pub struct RatioBar {
    /// Title of the bar's row.
    pub title: String,
    pub ratio: f64,
    /// Largest accepted ratio, if there is one.
    pub bar: Option<f64>,
}

/// Draws several panels on one sheet.
pub fn panels(panels: &[Panel]) -> String {
    let rows = panels.len().div_ceil(COLUMNS);
    let (width, height) = (PANEL_WIDTH * COLUMNS as f64, PANEL_HEIGHT * rows as f64);
    let mut svg = open(width, height);
    for (number, panel) in panels.iter().enumerate() {
        let (column, row) = (number % COLUMNS, number / COLUMNS);
        let (x, y) = (column as f64 * PANEL_WIDTH, row as f64 * PANEL_HEIGHT);
        // Writing to a string does not fail, here and below.
        let _ = writeln!(svg, "<g transform=\"translate({x} {y})\">");
        draw(panel, &mut svg);
        svg += "</g>\n";
    }
    svg + "</svg>\n"
}

/// Draws ratios on a logarithmic axis, with a tick at each accepted ratio.
pub fn ratios(title: &str, bars: &[RatioBar]) -> String {
    let height = TOP + bars.len() as f64 * BAR_HEIGHT + BOTTOM;
    let width = BAR_LABELS_WIDTH + BARS_WIDTH + 3.0 * RIGHT;
    let all = || bars.iter().flat_map(|bar| [Some(bar.ratio), bar.bar]).flatten();
    let least = all().fold(0.1, f64::min).max(1e-4).log10().floor();
    let most = all().fold(1.0, f64::max).log10().ceil();
    let x = |ratio: f64| {
        let part = (ratio.max(1e-4).log10() - least) / (most - least);
        BAR_LABELS_WIDTH + part * BARS_WIDTH
    };
    let mut svg = open(width, height);
    text(&mut svg, RIGHT, 22.0, "start", "title", title);
    let note = "the upright stroke is the bar; left of it is good";
    text(&mut svg, RIGHT, 38.0, "start", "", note);
    let bottom = height - BOTTOM;
    for power in least as i32..=most as i32 {
        let at = x(10f64.powi(power));
        line(&mut svg, (at, TOP), (at, bottom), if power == 0 { "one" } else { "grid" });
        text(&mut svg, at, bottom + 18.0, "middle", "", &short(10f64.powi(power)));
    }
    for (number, bar) in bars.iter().enumerate() {
        let y = TOP + number as f64 * BAR_HEIGHT;
        let reached = bar.bar.map(|most| bar.ratio <= most);
        let colour = COLOURS[match reached {
            Some(true) => 2,
            Some(false) => 1,
            None => 3,
        }];
        let (start, end) = (x(10f64.powf(least)), x(bar.ratio));
        let _ = writeln!(
            svg,
            "<rect x=\"{start:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
            y + 4.0,
            (end - start).max(1.0),
            BAR_HEIGHT - 8.0
        );
        if let Some(at) = bar.bar.map(x) {
            line(&mut svg, (at, y + 1.0), (at, y + BAR_HEIGHT - 1.0), "bar");
        }
        text(&mut svg, BAR_LABELS_WIDTH - 8.0, y + 14.0, "end", "", &bar.title);
        let after = bar.bar.map_or(end, |most| end.max(x(most)));
        text(&mut svg, after + 6.0, y + 14.0, "start", "", &short(bar.ratio));
    }
    svg + "</svg>\n"
}

fn draw(panel: &Panel, svg: &mut String) {
    let points = || panel.curves.iter().flat_map(|(_, points)| points);
    let (mut xs, most): (Vec<f64>, f64) = (
        points().map(|point| point.0).collect(),
        points().map(|point| point.1).fold(0.0, f64::max),
    );
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let (Some(&first), Some(&last)) = (xs.first(), xs.last()) else { return };
    let step = nice_step(most / TICKS);
    let top = (most / step).ceil().max(1.0) * step;
    let (right, bottom) = (PANEL_WIDTH - RIGHT, PANEL_HEIGHT - BOTTOM);
    let x = |value: f64| {
        let span = (last / first).ln();
        let part = if span > 0.0 { (value / first).ln() / span } else { 0.5 };
        LEFT + part * (right - LEFT)
    };
    let y = |value: f64| bottom - value / top * (bottom - TOP);
    text(svg, LEFT, 20.0, "start", "title", &panel.title);
    text(svg, (LEFT + right) / 2.0, PANEL_HEIGHT - 8.0, "middle", "", &panel.x_title);
    for tick in 0..=(top / step).round() as i32 {
        let value = f64::from(tick) * step;
        line(svg, (LEFT, y(value)), (right, y(value)), "grid");
        text(svg, LEFT - 6.0, y(value) + 4.0, "end", "", &short(value));
    }
    for &value in &xs {
        text(svg, x(value), bottom + 18.0, "middle", "", &short(value));
    }
    let mut legend_x = LEFT;
    for ((name, points), colour) in panel.curves.iter().zip(COLOURS) {
        let path: Vec<String> =
            points.iter().map(|&(at, value)| format!("{:.1},{:.1}", x(at), y(value))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
        for point in &path {
            if let Some((cx, cy)) = point.split_once(',') {
                let _ =
                    writeln!(svg, "<circle cx=\"{cx}\" cy=\"{cy}\" r=\"3.5\" fill=\"{colour}\"/>");
            }
        }
        let _ = writeln!(
            svg,
            "<rect x=\"{legend_x:.1}\" y=\"28\" width=\"10\" height=\"10\" fill=\"{colour}\"/>"
        );
        text(svg, legend_x + 14.0, 37.0, "start", "", name);
        // Letters of this size are about seven pixels wide.
        legend_x += 32.0 + 7.0 * name.len() as f64;
    }
}

fn open(width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <style>.grid{{stroke:#ddd}}.one{{stroke:#888}}.bar{{stroke:#000;stroke-width:2}}\
         .title{{font-weight:bold;font-size:13px}}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    )
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, class: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>"
    );
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), class: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" class=\"{class}\"/>",
        from.0, from.1, to.0, to.1
    );
}

/// Returns the next of 1, 2, 5, 10 … times a power of ten.
fn nice_step(step: f64) -> f64 {
    let step = step.max(1e-9);
    let power = 10f64.powf(step.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    factors.into_iter().map(|factor| factor * power).find(|nice| *nice >= step).unwrap_or(step)
}

/// Formats a number with three significant digits, thousands and millions by letter.
pub fn short(value: f64) -> String {
    let (value, letter) = match value.abs() {
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        size if size >= 0.1 => 3,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    };
    text + letter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 0.0123, 0.5, 2.0, 2.25, 1000.0, 12_345.0, 1e6].map(short);
        assert_eq!(texts, ["0", "0.0123", "0.5", "2", "2.25", "1000", "12.3k", "1M"]);
    }

    #[test]
    fn steps_are_nice() {
        assert_eq!([0.3, 1.0, 12.0, 6.0].map(nice_step), [0.5, 1.0, 20.0, 10.0]);
    }

    #[test]
    fn every_point_is_drawn() {
        let curve = |name: &str| (name.to_string(), vec![(1.0, 2.0), (10.0, 3.0), (100.0, 1.0)]);
        let panel = Panel {
            title: "a < b".to_string(),
            x_title: "x".to_string(),
            curves: vec![curve("a"), curve("b")],
        };
        let svg = panels(&[panel.clone(), panel]);
        assert_eq!(svg.matches("<circle").count(), 12);
        assert_eq!(svg.matches("<polyline").count(), 4);
        assert!(svg.contains("a &lt; b") && !svg.contains("NaN"));
    }
}
