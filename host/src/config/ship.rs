//! Flags for copying finished blocks elsewhere.

use super::{ServeConfig, bytes};
use crate::ship::ShipConfig;
use crate::ship::state::STATE_FILE;
use crate::store::HoldConfig;
use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Args)]
pub(super) struct ShipArgs {
    /// Upload finished blocks to object storage, as Thanos wants them: file:///DIR, s3://BUCKET,
    /// gs://BUCKET or az://CONTAINER, each with a path if wanted. Needs --external-label. Endpoint,
    /// region and credentials come from the environment, such as AWS_ENDPOINT, AWS_REGION,
    /// AWS_ACCESS_KEY_ID. Blocks are neither merged nor dropped for their age before they are there
    #[arg(long, value_name = "URL")]
    ship: Option<String>,

    /// Bytes a second that --ship uploads at most. 0: no limit
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = bytes, requires = "ship")]
    ship_bandwidth: u64,

    /// With --ship, upload merged blocks, too, of which no part was uploaded: those from before
    #[arg(long, requires = "ship")]
    ship_compacted: bool,

    /// The file in which somebody else who uploads blocks lists them, as Thanos' sidecar does in
    /// DIR/thanos.shipper.json: blocks are neither merged nor dropped for their age before
    #[arg(long, value_name = "FILE", conflicts_with = "ship")]
    delay_compact_file: Option<PathBuf>,
}

impl ShipArgs {
    /// What is shipped, if anything.
    pub fn ship(&self) -> Option<ShipConfig> {
        Some(ShipConfig {
            url: self.ship.clone()?,
            bytes_per_second_max: self.ship_bandwidth,
            with_compacted: self.ship_compacted,
        })
    }

    /// Which blocks wait for being copied, if any.
    pub fn hold(&self, data_dir: &Path) -> Option<HoldConfig> {
        let own = self.ship.as_ref().map(|_| data_dir.join(STATE_FILE));
        let file = own.or_else(|| self.delay_compact_file.clone())?;
        Some(HoldConfig { file, with_compacted: self.ship_compacted })
    }
}

impl ServeConfig {
    /// Whether what is shipped can be told from what other nodes ship.
    pub(super) fn check_ship(&self) -> Result<(), String> {
        match &self.ship {
            Some(_) if self.http.external_labels.is_empty() => Err(
                "--ship needs --external-label: in the bucket, a node's blocks are told from all \
                 others' by these labels alone, and Thanos would merge those of two nodes into \
                 one. Add one that no other node has, for example --external-label=node=edge-7"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }
}
