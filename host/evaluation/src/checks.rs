//! Checks of rule files that need the engine: the syntax of expressions.

use std::cell::RefCell;
use tidepool_disk::BlockDirs;
use tidepool_query::QueryFeatures;
use tidepool_rules::file::Checks;
use tidepool_rules::template::Template;
use tidepool_runtime::{
    CallError, Instance, InstanceLimits, InstanceLogs, InstanceStorage, Runtime,
};

/// Memory of the instance that parses expressions, in bytes.
const MEMORY_BYTES_MAX: usize = 64 << 20;

/// Reasons why expressions cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum ChecksError {
    #[error("the engine cannot run: {0}")]
    Runtime(String),
    #[error("the engine does not start: {0}")]
    Instance(#[from] CallError),
}

/// Checks expressions by an instance of the engine, and templates.
pub struct EngineChecks {
    instance: RefCell<Instance>,
    features: QueryFeatures,
}

impl EngineChecks {
    pub fn new(features: QueryFeatures) -> Result<EngineChecks, ChecksError> {
        let runtime =
            Runtime::shared().map_err(|error| ChecksError::Runtime(format!("{error:#}")))?;
        // Parsing needs no store: nothing of the directory is read.
        let blocks = BlockDirs::none();
        let storage =
            InstanceStorage { logs: InstanceLogs::None, blocks, head: None, memory: None };
        let limits = InstanceLimits { memory_bytes_max: MEMORY_BYTES_MAX, deadline: None };
        let instance = RefCell::new(runtime.instantiate_closed(storage, limits)?);
        Ok(EngineChecks { instance, features })
    }
}

impl Checks for EngineChecks {
    fn expression(&self, text: &str) -> Result<(), String> {
        match self.instance.borrow_mut().parse_query(text, self.features.options()) {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(error.text),
            Err(error) => Err(error.to_string()),
        }
    }

    fn template(&self, alert: &str, text: &str) -> Result<(), String> {
        Template::of_alert(alert, text).map(drop).map_err(|error| error.to_string())
    }
}
