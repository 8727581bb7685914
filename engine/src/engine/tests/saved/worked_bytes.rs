//! The snapshot whose bytes `docs/format/head.md` lists.

use super::*;

const DOCUMENT: &str = include_str!("../../../../docs/format/head.md");

const OPTIONS: HeadOptions = HeadOptions { block_duration_ms: 7_200_000, ..super::OPTIONS };

/// Pieces of lines like `- 13 0a   │ what this is`; the first line of a piece has a dash.
fn documents_pieces() -> Vec<Vec<u8>> {
    let (_, rest) = DOCUMENT.split_once("\n```pieces\n").expect("the part");
    let (text, _) = rest.split_once("\n```").expect("its end");
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    for line in text.lines() {
        let (line, _) = line.split_once('│').expect("a line with a bar");
        for word in line.split_whitespace() {
            match (word, pieces.last_mut()) {
                ("-", _) => pieces.push(Vec::new()),
                (byte, Some(piece)) => {
                    piece.push(u8::from_str_radix(byte, 16).expect("hexadecimal digits"));
                }
                _ => panic!("{line}: bytes before the first piece"),
            }
        }
    }
    pieces
}

fn documents_node() -> Node {
    let mut node = Node::with(OPTIONS);
    let labels = Labels::from_sorted([(LABEL_NAME, "up"), ("job", "n")]);
    let appended = node.engine.append_batch("append", 10_000, |head, batch| {
        head.metadata.set(b"up", 2, b"Up.", b"");
        let slot = head.series_by_labels(batch, &labels).expect("a valid label set");
        let exemplar_labels = Labels::from_sorted([("id", "x")]);
        let exemplar =
            crate::head::Exemplar { labels: exemplar_labels, value: 2.0, timestamp_ms: 2000 };
        head.check_exemplar(batch, slot, exemplar);
        for time_ms in [1000, 2000] {
            Ingest::check(head, batch, slot, time_ms, Value::Float(1.0))?;
        }
        Ok(())
    });
    appended.expect("storage that works");
    node
}

#[test]
fn a_head_becomes_the_documents_bytes() {
    let pieces = pieces(documents_node().engine, 1 << 20);
    let hex = |piece: &Vec<u8>| {
        let bytes: Vec<String> = piece.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("- {}\n", bytes.join(" "))
    };
    let shown: String = pieces.iter().map(hex).collect();
    assert!(pieces == documents_pieces(), "\n{shown}");
}

#[test]
fn the_documents_bytes_become_a_head() {
    let node = documents_node();
    let mut engine = node.unread(1);
    assert!(load(&mut engine, &documents_pieces()).expect("a sound head"));
    let loaded = Node { engine, ..documents_node() };
    assert_same_answers(&loaded, &node).expect("the same");
    assert_eq!(loaded.engine.metadata("", u32::MAX), node.engine.metadata("", u32::MAX));
    assert_eq!(loaded.select(Vec::new(), TimeRange::ALL)["up"].len(), 2);
}
