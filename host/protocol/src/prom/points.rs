//! Assigns rows to data points, because OTLP senders count rejected data points, not rows.

/// Kind of the data point that the next rows belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowsOf {
    /// A data point with one row.
    #[default]
    Point,
    /// A data point with several rows.
    WidePoint,
    /// No data point: rows about the sender itself.
    Nothing,
}

/// Data points of a piece (a part of a request's rows).
#[derive(Debug, Default)]
pub struct Points {
    /// Number of rows of each data point.
    rows: Vec<u32>,
    /// Whether the first data point has rows in the previous piece.
    is_continued: bool,
}

/// Counts the rejected data points, some of which span two pieces.
#[derive(Debug, Default)]
pub struct Rejected {
    points: u64,
    is_last: bool,
}

impl Points {
    /// Begins a data point. A data point without rows is not counted.
    pub fn begin(&mut self) {
        match self.rows.as_slice() {
            // The previous point ended with its piece, so no point continues in this piece.
            [0] => self.is_continued = false,
            [.., 0] => {}
            _ => self.rows.push(0),
        }
    }

    /// Counts a row of the last data point, if one has begun.
    pub fn count_row(&mut self) {
        if let Some(rows) = self.rows.last_mut() {
            *rows += 1;
        }
    }

    /// Returns the points of the piece that ends here. The last point may continue.
    pub fn take(&mut self) -> Points {
        let next = match self.rows.is_empty() {
            true => Points::default(),
            false => Points { rows: vec![0], is_continued: true },
        };
        std::mem::replace(self, next)
    }

    /// Returns the smallest number of data points that can have `refused_rows` rows, because
    /// usually whole points are refused.
    fn of_refused(&self, refused_rows: u64) -> u64 {
        if refused_rows == 0 {
            return 0;
        }
        let mut rows = self.rows.clone();
        // The number is smallest if the points with the most rows were refused.
        rows.sort_unstable_by(|one, other| other.cmp(one));
        let mut left = refused_rows;
        let mut points = 0;
        for rows in rows.into_iter().take_while(|rows| *rows > 0) {
            if left == 0 {
                break;
            }
            left = left.saturating_sub(u64::from(rows));
            points += 1;
        }
        points
    }

    fn rows(&self) -> u64 {
        self.rows.iter().copied().map(u64::from).sum()
    }
}

impl Rejected {
    /// Adds a piece; `stored_rows` of its rows were stored.
    pub fn add(&mut self, points: &Points, stored_rows: u64) {
        let refused = points.of_refused(points.rows().saturating_sub(stored_rows));
        // A rejected point that spans two pieces was counted in the previous piece.
        self.points += refused - u64::from(points.is_continued && self.is_last && refused > 0);
        self.is_last = refused > 0;
    }

    pub fn points(&self) -> u64 {
        self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(rows: &[u32]) -> Points {
        Points { rows: rows.to_vec(), is_continued: false }
    }

    #[test]
    fn refused_rows_are_as_many_points_as_have_them() {
        for (rows, stored, wanted) in [
            (&[1, 1, 1][..], 3, 0),
            (&[1, 1, 1], 1, 2),
            (&[13, 13, 13], 26, 1),
            (&[13, 13, 13], 0, 3),
            (&[4, 13, 0], 4, 1),
            (&[4, 13], 0, 2),
            // A part of one point.
            (&[13, 13], 25, 1),
            // More rows are stored than were sent; and no rows at all.
            (&[1], 9, 0),
            (&[], 0, 0),
        ] {
            let mut rejected = Rejected::default();
            rejected.add(&points(rows), stored);
            assert_eq!(rejected.points(), wanted, "{rows:?} {stored}");
        }
    }

    #[test]
    fn a_point_in_two_pieces_is_one() {
        let mut on_its_way = Points::default();
        let mut rejected = Rejected::default();
        on_its_way.begin();
        for _ in 0..3 {
            for _ in 0..5 {
                on_its_way.count_row();
            }
            rejected.add(&on_its_way.take(), 0);
        }
        assert_eq!(rejected.points(), 1);
        // The point ended with its piece.
        on_its_way.begin();
        on_its_way.count_row();
        rejected.add(&on_its_way.take(), 0);
        assert_eq!(rejected.points(), 2);
    }
}
