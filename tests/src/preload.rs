//! Programs that run with preloaded libraries between them and the system, chosen by variables.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// The variable that names the libraries.
pub const LIBRARIES_VARIABLE: &str = "LD_PRELOAD";

/// Environment variables and their values.
pub type Variables = BTreeMap<&'static str, OsString>;

/// Joins the variables of several sources, with the libraries of each.
pub fn joined(all: impl IntoIterator<Item = Variables>) -> Variables {
    let mut joined = Variables::new();
    for (name, value) in all.into_iter().flatten() {
        match joined.get_mut(name) {
            Some(before) if name == LIBRARIES_VARIABLE => {
                before.push(":");
                before.push(value);
            }
            _ => drop(joined.insert(name, value)),
        }
    }
    joined
}

/// Returns a command that starts a program with these variables.
pub fn starter(variables: Variables) -> Vec<OsString> {
    let variable = |(name, value): (&str, OsString)| {
        let mut variable = OsString::from(name);
        variable.push("=");
        variable.push(value);
        variable
    };
    std::iter::once("/usr/bin/env".into()).chain(variables.into_iter().map(variable)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_of_each_are_loaded() {
        let first = Variables::from([(LIBRARIES_VARIABLE, "a.so".into()), ("A", "1".into())]);
        let second = Variables::from([(LIBRARIES_VARIABLE, "b.so".into()), ("B", "2".into())]);
        let starter = starter(joined([first, second]));
        assert_eq!(starter, ["/usr/bin/env", "A=1", "B=2", "LD_PRELOAD=a.so:b.so"]);
    }
}
