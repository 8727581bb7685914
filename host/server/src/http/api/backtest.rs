//! `POST /api/v1/alerts/backtest`: what rules would have done over a stored range of time.

use super::envelope::{ApiError, success_of_json};
use super::parameters::Parameters;
use crate::http::context::Context;
use crate::http::reply::Reply;
use tidepool_evaluation::backtest::{BacktestError, BacktestRequest};
use tidepool_lifecycle::clock::system_now_ms;

pub async fn answer(context: &Context, parameters: &Parameters) -> Result<Reply, ApiError> {
    let start_ms = parameters.some_time("start")?;
    let end_ms = parameters.time("end", system_now_ms())?;
    if end_ms < start_ms {
        let why = "end timestamp must not be before start time";
        return Err(ApiError::parameter("end", why));
    }
    let timeout = match parameters.first("timeout") {
        "" => None,
        _ => Some(parameters.positive_duration("timeout")?),
    };
    let rules = parameters.required("rules")?.to_owned();
    let request = BacktestRequest { rules, start_ms, end_ms, timeout };
    let report = context.rules.backtest(request).await.map_err(|error| match error {
        BacktestError::Rules(mistakes) => ApiError::BadData(mistakes),
        BacktestError::Ended(why) => ApiError::Timeout(why),
        error @ BacktestError::TooMany(_) => ApiError::Execution(error.to_string()),
        BacktestError::Store(error) => error.into(),
    })?;
    let json = serde_json::to_string(&report);
    Ok(success_of_json(&json.map_err(|error| ApiError::Internal(error.to_string()))?))
}
