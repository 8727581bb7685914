use super::*;

mod hostile;
mod upstream;

struct Answer(Vec<Sample>);

impl Source for Answer {
    fn query(&self, _: &str) -> Result<Vec<Sample>, String> {
        Ok(self.0.clone())
    }

    fn time_ms(&self) -> i64 {
        1_353_755_652_000
    }
}

fn data() -> Data {
    Data {
        labels: Arc::default(),
        external_labels: Arc::default(),
        external_url: "http://testhost:9090/path/prefix".into(),
        value: SampleValue::Float(1.5),
    }
}

fn sample(value: f64, labels: &[(&str, &str)]) -> Sample {
    let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Sample { labels: Arc::new(labels.collect()), value: SampleValue::Float(value) }
}

fn expand(text: &str, dot: Value, answer: Vec<Sample>) -> Result<String, String> {
    let template = Template::parse("test", text).map_err(|error| error.to_string())?;
    let source = Answer(answer);
    let budget = Budget::new(Limits::default(), &Allowance::new(u64::MAX));
    let data = data();
    let state = State::new(&template, &data.external_url, &source, budget);
    state.run(dot).map_err(|error| error.to_string())
}
