use proptest::prelude::*;

use crate::build_with;

proptest! {
    #[test]
    fn no_spelling_panics(
        name in "(load|ycsb|mix|update|churn|uniform|normal|tpc|trace)",
        argument in "[ab]?",
        param in "(keys|ops|value|share|skew|records|bytes|deletes|domain|sigma|omega\
                 |warehouses|districts|seed|get|put|insert|get_absent|scan|scan_length)",
        value in "(0|1|[0-9]{1,3}|0\\.[0-9]{1,2}|[0-9a-zB.-]{1,5})",
    ) {
        let separator = if argument.is_empty() { "" } else { ", " };
        let text = format!("{name}({argument}{separator}{param}={value})");
        if let Ok(workload) = build_with(&text, b"timestamp,op,key,value_size\n1,put,a,1\n") {
            let items = workload.items();
            for op in workload.ops().take(100) {
                prop_assert!(op.expect("the trace is sound").item < items);
            }
            let spelled = workload.spec().to_string();
            let again = build_with(&spelled, b"timestamp,op,key,value_size\n1,put,a,1\n")
                .expect("canonical spellings are valid");
            prop_assert_eq!(again.spec(), workload.spec());
        }
    }

    #[test]
    fn no_trace_panics(text in "([0-9]{0,3}|put|get|delete|a|,|\n|\r\n|[^a]){0,40}") {
        let text = format!("timestamp,op,key,value_size\n{text}");
        let workload = build_with("trace(t)", text.as_bytes()).expect("the header is right");
        let items = workload.items();
        for op in workload.ops().map_while(Result::ok) {
            prop_assert!(op.item < items);
        }
    }

    #[test]
    fn no_property_file_panics(
        lines in prop::collection::vec(
            "(recordcount|operationcount|insertstart|insertcount|zeropadding|fieldlength\
             |readproportion|insertproportion|scanproportion|maxscanlength|minscanlength)\
             =[0-9]{0,2}(\\.[0-9])?",
            0..6,
        ),
        bytes: Vec<u8>,
    ) {
        let tail = b"\nrequestdistribution=latest\n";
        let text = [lines.join("\n").as_bytes(), tail, &bytes].concat();
        for text in [&text[..], &text[..text.len() - bytes.len()]] {
            let Ok(workload) = build_with("ycsb(w, ops=50, records=20)", text) else { continue };
            let items = workload.items();
            for op in workload.ops() {
                prop_assert!(op.expect("nothing is read any more").item < items);
            }
        }
    }
}
