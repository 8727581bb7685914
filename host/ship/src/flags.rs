//! Flags for shipping: uploading finished blocks to object storage.

use super::ShipConfig;
use super::state::STATE_FILE;
use clap::Args;
use std::path::{Path, PathBuf};
use tidepool_settings::duration::bytes;
use tidepool_settings::flags::Marks;

#[allow(missing_docs)] // Clap would take a comment here for the text of the whole command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Forwarding and shipping")]
pub struct ShipFlags {
    /// Upload blocks to object storage, for Thanos
    ///
    /// file:///DIR, s3://BUCKET, gs://BUCKET or az://CONTAINER, optionally with a path. Needs
    /// --external-label. Endpoint, region and credentials come from the environment, for example
    /// AWS_ENDPOINT, AWS_REGION, AWS_ACCESS_KEY_ID. Blocks are neither merged nor dropped for their
    /// age before they are uploaded.
    #[arg(long, value_name = "URL")]
    ship: Option<String>,

    /// Maximum bandwidth of --ship in bytes per second, 0 for no limit
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = bytes, requires = "ship")]
    ship_bandwidth: u64,

    /// Let --ship upload merged blocks as well
    ///
    /// Only those of which no part was uploaded: blocks merged before shipping was enabled.
    #[arg(long, requires = "ship")]
    ship_compacted: bool,

    /// File in which another uploader lists the blocks that it has uploaded
    ///
    /// Thanos' sidecar writes DIR/thanos.shipper.json. Blocks are neither merged nor dropped for
    /// their age before they are listed.
    #[arg(long, value_name = "FILE", conflicts_with = "ship")]
    delay_compact_file: Option<PathBuf>,
}

impl ShipFlags {
    pub const MARKS: Marks = Marks {
        short: &["ship"],
        prometheus: &[("storage.tsdb.delay-compact-file.path", "delay-compact-file")],
        urls: &["ship"],
        ..Marks::NONE
    };

    /// Returns the settings of shipping, if it is enabled.
    pub fn ship(&self) -> Option<ShipConfig> {
        Some(ShipConfig {
            url: self.ship.clone()?,
            bytes_per_second_max: self.ship_bandwidth,
            with_compacted: self.ship_compacted,
        })
    }

    /// Returns the file that lists uploaded blocks, if merging and retention must wait for uploads,
    /// and whether merged blocks are uploaded as well.
    pub fn uploaded_list(&self, data_dir: &Path) -> Option<(PathBuf, bool)> {
        let own = self.ship.as_ref().map(|_| data_dir.join(STATE_FILE));
        let file = own.or_else(|| self.delay_compact_file.clone())?;
        Some((file, self.ship_compacted))
    }
}

/// Checks that external labels distinguish this node's blocks from those of other nodes.
pub fn check(ship: Option<&ShipConfig>, has_external_labels: bool) -> Result<(), String> {
    match ship {
        Some(_) if !has_external_labels => Err(
            "--ship needs --external-label: in the bucket, only these labels distinguish a node's \
             blocks from those of other nodes, and Thanos would merge those of two nodes into one. \
             Add one that no other node has, for example --external-label=node=edge-7"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}
