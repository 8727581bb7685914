use super::*;

fn shard(segment: u32) -> ShardPosition {
    let place = |record| Place { segment, record, row: 7 };
    ShardPosition {
        in_order: place(1),
        out_of_order: place(2),
        store_window_ms: -5,
        store_labels: vec![1; segment as usize],
        store_time_ms: i64::MIN,
    }
}

#[test]
fn what_was_written_last_is_read_whatever_is_left_of_it() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.position");
    let (mut file, none) = PositionFile::open(dir.path(), "a")?;
    assert!(none.is_none());
    let segments = |position: Option<Position>| {
        position.map(|p| p.shards.iter().map(|s| s.in_order.segment).collect::<Vec<_>>())
    };
    for segment in 1..=3 {
        let (gaps, delivered_ms) = (vec![9; segment as usize], Some(i64::from(segment)));
        file.write(&[shard(segment), shard(segment + 10)], Some(gaps), delivered_ms)?;
        let (_, read) = PositionFile::open(dir.path(), "a")?;
        let read = read.ok_or_else(|| io::Error::other("nothing"))?;
        assert_eq!(read.gaps, vec![9; segment as usize]);
        assert_eq!(read.delivered_ms, delivered_ms);
        assert_eq!(format!("{:?}", read.shards[0]), format!("{:?}", shard(segment)));
    }
    file.write(&[shard(4)], None, None)?;
    // The newest slot is torn: the one before counts.
    let whole = fs::read(&path)?;
    for cut in [10, HEAD_BYTES + 3] {
        let mut torn = whole.clone();
        torn[cut] ^= 1;
        fs::write(&path, torn)?;
        let (_, read) = PositionFile::open(dir.path(), "a")?;
        assert_eq!(segments(read), Some(vec![3, 13]), "{cut}");
    }
    let files = fs::read_dir(dir.path())?.count();
    assert_eq!(files, 2, "of the gaps only the last are left");
    Ok(())
}

/// Positions of versions that did not write down how far delivery had come are read on.
#[test]
fn a_position_without_its_time_is_read() {
    let whole = encode(3, &[shard(4)], Some(77));
    let (gap_number, shards, delivered_ms) = decode(&whole).expect("it decodes");
    assert_eq!((gap_number, shards.len(), delivered_ms), (3, 1, Some(77)));
    let before = &whole[..whole.len() - 8];
    let (gap_number, shards, delivered_ms) = decode(before).expect("it decodes");
    assert_eq!((gap_number, shards.len(), delivered_ms), (3, 1, None));
    assert!(decode(&whole[..whole.len() - 1]).is_none());
    assert!(decode(&[&whole[..], &[0]].concat()).is_none());
    assert_eq!(decode(&encode(0, &[], None)).map(|(.., delivered)| delivered), Some(None));
}

/// Another version gave series to shards in another way: none of its series is skipped.
#[test]
fn positions_of_other_shards_begin_at_the_earliest() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let at = |out_of_order: u32, in_order: u32| {
        let out_of_order = Place { record: out_of_order, ..shard(5).out_of_order };
        ShardPosition { out_of_order, ..shard(in_order) }
    };
    for (written, is_changed) in
        [(vec![at(9, 5), at(3, 6), at(4, 7)], true), (vec![at(9, 5)], false)]
    {
        let (mut file, _) = PositionFile::open(dir.path(), "a")?;
        let offset = ((file.count + 1) % 2) * SLOT_BYTES;
        file.write(&written, Some(vec![1, 2]), Some(77))?;
        file.file.write_all_at(MAGIC_OF_OTHER_SHARDS, offset)?;
        let (mut file, read) = PositionFile::open(dir.path(), "a")?;
        let read = read.ok_or_else(|| io::Error::other("nothing"))?;
        assert_eq!((read.gaps, read.delivered_ms), (vec![1, 2], Some(77)));
        let expected = match is_changed {
            true => Position::at(written[0].in_order, written[1].out_of_order, 3).shards,
            false => written.clone(),
        };
        assert_eq!(format!("{:?}", read.shards), format!("{expected:?}"));
        // What is written from now on is of this version.
        file.write(&written, None, None)?;
        let (_, read) = PositionFile::open(dir.path(), "a")?;
        let read = read.ok_or_else(|| io::Error::other("nothing"))?;
        assert_eq!(format!("{:?}", read.shards), format!("{written:?}"));
    }
    Ok(())
}

#[test]
fn what_is_damaged_is_put_aside_and_the_log_is_sent_again() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("a.position");
    for gaps_are_damaged in [false, true] {
        let (mut file, _) = PositionFile::open(dir.path(), "a")?;
        file.write(&[shard(7)], Some(vec![1, 2, 3]), None)?;
        match gaps_are_damaged {
            true => fs::write(file.gap_path(file.gap_number), b"other")?,
            false => fs::write(&path, b"something else")?,
        }
        let (mut file, read) = PositionFile::open(dir.path(), "a")?;
        let read = read.ok_or_else(|| io::Error::other("nothing"))?;
        assert_eq!(format!("{read:?}"), format!("{:?}", Position::oldest()));
        assert!(dir.path().join("a.position.damaged").exists());
        assert_eq!(fs::read_dir(dir.path())?.count(), 2, "no gaps are left");
        file.write(&[shard(9)], None, None)?;
        let (_, read) = PositionFile::open(dir.path(), "a")?;
        assert_eq!(read.map(|position| position.shards[0].in_order.segment), Some(9));
    }
    Ok(())
}

#[test]
fn a_write_that_fails_leaves_what_was_there() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let (mut file, _) = PositionFile::open(dir.path(), "a")?;
    file.write(&[shard(1)], Some(vec![1]), None)?;
    let gone = dir.path().join("elsewhere");
    let there = std::mem::replace(&mut file.dir, gone);
    assert!(file.write(&[shard(2)], Some(vec![2]), None).is_err(), "no place for the gaps");
    let (_, read) = PositionFile::open(dir.path(), "a")?;
    assert_eq!(read.map(|position| position.gaps), Some(vec![1]));
    file.dir = there;
    file.write(&[shard(2)], Some(vec![2]), None)?;
    let (_, read) = PositionFile::open(dir.path(), "a")?;
    assert_eq!(read.map(|position| position.gaps), Some(vec![2]));
    assert_eq!(fs::read_dir(dir.path())?.count(), 2);
    Ok(())
}

#[test]
fn destinations_that_are_gone_leave_nothing() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    fs::create_dir(dir.path().join("held"))?;
    for name in ["a", "a.gaps.1", "b.position"] {
        let (mut file, _) = PositionFile::open(dir.path(), name)?;
        file.write(&[shard(1)], Some(vec![1]), None)?;
    }
    let mut gone = PositionFile::keep_only(dir.path(), &["a"])?;
    gone.sort();
    assert_eq!(gone, ["a.gaps.1", "b.position"]);
    assert!(PositionFile::keep_only(dir.path(), &["a"])?.is_empty());
    let mut left: Vec<_> = fs::read_dir(dir.path())?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<_>>()?;
    left.sort();
    assert_eq!(left, ["a.gaps.1", "a.position", "held"]);
    Ok(())
}
