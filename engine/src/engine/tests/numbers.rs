//! Numbers of series: none is given twice, since parts of the logs that are held for others, and
//! out-of-order samples, name their series by it.

use super::*;
use crate::storage::Wal;
use crate::wal::{
    ExemplarRecord, MetadataRecord, exemplars_record, metadata_record, put_exemplar, put_metadata,
};

fn number_of(node: &mut Node, name: &str) -> Result<u64> {
    node.engine.series_ref(&Labels::from_sorted([(LABEL_NAME, name)]))
}

#[test]
fn a_number_that_a_checkpoint_leaves_out_is_not_given_again() -> Result<()> {
    for restarts in [1, 2] {
        let mut node = Node::new();
        node.append("stays", 0, 1);
        let mut last = 0;
        for name in ["gone", "gone too"] {
            node.append(name, 10, 1);
            last = last.max(number_of(&mut node, name)?);
        }
        for time_ms in (0..6_000).step_by(100) {
            node.append("stays", time_ms, 1);
            node.compact();
        }
        // Neither they nor a row of them is in the log any more.
        assert!(node.wal.segments(LogKind::InOrder)[0] > 3);
        assert_eq!(node.engine.figures()?.head_series, 1);
        for _ in 0..restarts {
            node.restart();
        }
        let new = number_of(&mut node, "new")?;
        assert!(new > last, "{new} was given before: the last was {last}");
    }
    Ok(())
}

#[test]
fn numbers_that_any_row_names_are_taken() -> Result<()> {
    let labels = vec![("trace", "1")];
    let mut exemplars = exemplars_record(70, 0);
    let row = ExemplarRecord { series_ref: 77, timestamp_ms: 0, value: 1.0, labels };
    put_exemplar(&mut exemplars, (70, 0), &row);
    let mut metadata = metadata_record();
    let row = MetadataRecord { series_ref: 99, kind: 1, unit: "", help: "", family: "f" };
    put_metadata(&mut metadata, &row);
    for (record, last) in [(exemplars, 77), (metadata, 99)] {
        let mut node = Node::new();
        node.wal.reopened().append(LogKind::InOrder, &[record])?;
        node.restart();
        assert_eq!(number_of(&mut node, "new")?, last + 1);
    }
    Ok(())
}
