//! Upstream's test scripts on the native engine.

mod promqltest;

/// Cases that upstream's scripts lack, in their form, with results of upstream's engine.
#[test]
fn statements_of_ours() {
    promqltest::run_text("ours", include_str!("cases/ours.test"));
}

macro_rules! files {
    ($($test:ident $name:literal;)*) => {
        $(
            #[test]
            fn $test() {
                promqltest::run_file($name);
            }
        )*

        #[test]
        fn there_are_no_other_files() {
            promqltest::expect_files(&[$(stringify!($test)),*]);
        }
    };
}

files! {
    aggregators "aggregators";
    at_modifier "at_modifier";
    collision "collision";
    duration_expression "duration_expression";
    extended_vectors "extended_vectors";
    fill_modifier "fill-modifier";
    functions "functions";
    histograms "histograms";
    info "info";
    limit "limit";
    literals "literals";
    name_label_dropping "name_label_dropping";
    native_histograms "native_histograms";
    operators "operators";
    range_queries "range_queries";
    selectors "selectors";
    staleness "staleness";
    start_timestamps "start_timestamps";
    subquery "subquery";
    trig_functions "trig_functions";
    type_and_unit "type_and_unit";
}
