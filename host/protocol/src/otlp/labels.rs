//! Labels of a data point: from its attributes, its resource and its scope.

use super::Settings;
use super::attributes;
use super::names::NameError;
use super::proto::common::v1::{InstrumentationScope, KeyValue};
use crate::prom::rows::{LabelSet, NAME};

/// Attributes that identify a resource as a Prometheus target.
pub const IDENTIFYING: [&str; 3] = ["service.namespace", "service.name", "service.instance.id"];

/// Labels that a resource adds to all its data points.
#[derive(Debug, Default)]
pub struct ResourceLabels {
    job: String,
    instance: String,
    promoted: LabelSet,
}

impl ResourceLabels {
    pub fn new(settings: &Settings, attributes: &[KeyValue]) -> Result<ResourceLabels, NameError> {
        let value = |key: &str| {
            let found = attributes.iter().find(|attribute| attribute.key == key);
            found.map(|attribute| attributes::text(attribute.value.as_ref()))
        };
        let [namespace, name, instance] = IDENTIFYING.map(value);
        let job = match (namespace, name) {
            (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
            (None, Some(name)) => name,
            // Upstream sets no job if there is a namespace without a service name.
            (_, None) => String::new(),
        };
        let mut promoted = LabelSet::default();
        for attribute in attributes {
            if settings.promoted_attributes.contains(&attribute.key) {
                let name = settings.strategy.label(&attribute.key)?;
                promoted.set(&name, attributes::text(attribute.value.as_ref()));
            }
        }
        Ok(ResourceLabels { job, instance: instance.unwrap_or_default(), promoted })
    }

    /// Adds job and instance, which replace attributes of these names.
    pub fn identify(&self, labels: &mut LabelSet) {
        for (name, value) in [("job", &self.job), ("instance", &self.instance)] {
            if !value.is_empty() {
                labels.set(name, value.as_str());
            }
        }
    }
}

/// Returns the labels of a scope; `None` if they are disabled or the scope has no name.
pub fn of_scope(
    settings: &Settings,
    scope: &InstrumentationScope,
    schema_url: &str,
) -> Result<Option<LabelSet>, NameError> {
    if !settings.promote_scope || scope.name.is_empty() {
        return Ok(None);
    }
    let mut labels = LabelSet::default();
    for attribute in &scope.attributes {
        let name = settings.strategy.label(&format!("otel_scope_{}", attribute.key))?;
        labels.set(&name, attributes::text(attribute.value.as_ref()));
    }
    // Set after the attributes, because an attribute may be named `name`.
    labels.set("otel_scope_name", scope.name.as_str());
    labels.set("otel_scope_version", scope.version.as_str());
    labels.set("otel_scope_schema_url", schema_url);
    Ok(Some(labels))
}

/// Converts attributes to labels. Values whose translated names are equal are joined.
pub fn of_attributes(
    settings: &Settings,
    attributes: &[KeyValue],
    is_left_out: impl Fn(&str) -> bool,
) -> Result<LabelSet, NameError> {
    let kept = attributes.iter().filter(|attribute| !is_left_out(&attribute.key));
    let mut sorted: Vec<&KeyValue> = kept.collect();
    // Joined values are in the order of the original keys.
    sorted.sort_by(|one, other| one.key.cmp(&other.key));
    let mut labels = LabelSet::default();
    for attribute in sorted {
        let value = attributes::text(attribute.value.as_ref());
        // Without escaping, different keys cannot get the same name.
        if !settings.strategy.escapes() {
            labels.set(&attribute.key, value);
            continue;
        }
        let name = settings.strategy.label(&attribute.key)?;
        labels.join(&name, value);
    }
    Ok(labels)
}

/// Returns the labels of a data point without the metric name.
pub fn of_point(
    settings: &Settings,
    resource: &ResourceLabels,
    scope: Option<&LabelSet>,
    attributes: &[KeyValue],
) -> Result<LabelSet, NameError> {
    let mut labels = of_attributes(settings, attributes, |key| key == NAME)?;
    for (name, value) in resource.promoted.iter() {
        // The point's own attribute is more specific than that of its resource.
        if labels.get(name).is_empty() {
            labels.set(name, value);
        }
    }
    resource.identify(&mut labels);
    for (name, value) in scope.into_iter().flat_map(LabelSet::iter) {
        labels.set(name, value);
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::super::names::Strategy;
    use super::super::testing::{attribute, attributes};
    use super::*;

    fn pairs(labels: &LabelSet) -> Vec<(&str, &str)> {
        labels.iter().collect()
    }

    #[test]
    fn attributes_that_come_to_the_same_name_are_joined_in_order() -> Result<(), NameError> {
        let list = attributes(&[("b_c", "3"), ("b.c", "1"), ("a", ""), ("b-c", "0"), (NAME, "x")]);
        let none = ResourceLabels::default();
        let labels = of_point(&Settings::default(), &none, None, &list)?;
        assert_eq!(pairs(&labels), [("b_c", "0;1;3")]);
        let keep = Settings { strategy: Strategy::Keep, ..Settings::default() };
        let labels = of_point(&keep, &none, None, &list)?;
        assert_eq!(pairs(&labels), [("b-c", "0"), ("b.c", "1"), ("b_c", "3")]);
        assert!(of_point(&Settings::default(), &none, None, &[attribute("..", "x")]).is_err());
        Ok(())
    }

    #[test]
    fn resource_and_scope_add_their_labels() -> Result<(), NameError> {
        let settings = Settings {
            promoted_attributes: vec!["host.name".into(), "region".into(), "absent".into()],
            promote_scope: true,
            ..Settings::default()
        };
        let resource = attributes(&[
            ("service.name", "api"),
            ("service.namespace", "shop"),
            ("service.instance.id", "i-1"),
            ("host.name", "h"),
            ("region", "eu"),
            ("other", "o"),
        ]);
        let resource = ResourceLabels::new(&settings, &resource)?;
        let scope = InstrumentationScope {
            name: "lib".into(),
            version: "1".into(),
            attributes: attributes(&[("k.v", "x"), ("name", "overruled")]),
            ..InstrumentationScope::default()
        };
        let scope = of_scope(&settings, &scope, "")?;
        let point = attributes(&[("region", "own"), ("job", "overruled")]);
        let labels = of_point(&settings, &resource, scope.as_ref(), &point)?;
        let wanted = [
            ("host_name", "h"),
            ("instance", "i-1"),
            ("job", "shop/api"),
            ("otel_scope_k_v", "x"),
            ("otel_scope_name", "lib"),
            ("otel_scope_version", "1"),
            ("region", "own"),
        ];
        assert_eq!(pairs(&labels), wanted);
        Ok(())
    }

    #[test]
    fn the_job_needs_a_service_name() -> Result<(), NameError> {
        for (given, job) in [
            (&[("service.namespace", "shop")][..], ""),
            (&[("service.name", "api")], "api"),
            (&[("service.name", ""), ("service.namespace", "shop")], "shop/"),
        ] {
            let resource = ResourceLabels::new(&Settings::default(), &attributes(given))?;
            assert_eq!(resource.job, job);
        }
        Ok(())
    }
}
