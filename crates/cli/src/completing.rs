//! What a shell can complete that no script knows ahead: keyspaces of a store, and the names and
//! parameters in specs of policies and workloads. Also names of figures, which not every script
//! knows.
//!
//! The scripts of `lsmith completions` for bash, zsh and fish ask for these with the words of the
//! line. Where there is nothing to say, a script completes commands, options and fixed names by
//! itself.

use crate::specs;
use clap_complete::Shell;
use lsmith::env::RealEnv;
use lsmith_papers::FIGURES;
use lsmith_spec::{Spec, SpecError};
use lsmith_workload::{Workload, WorkloadInfo};
use std::path::PathBuf;

/// Returns the script that `clap_complete` has made for `shell`, with what asks `lsmith` for more.
pub(crate) fn asking(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!("{script}{BASH}"),
        Shell::Fish => format!("{script}{FISH}"),
        Shell::Zsh => {
            // Its own function is called where `lsmith` has nothing to say. The lines at its end
            // call the function `_lsmith`, or register it.
            let plain = script.replacen("\n_lsmith() {", "\n_lsmith_plain() {", 1);
            let end = plain.rfind("\nif [ \"$funcstack[1]\"").unwrap_or(plain.len());
            format!("{}{ZSH}{}", &plain[..end], &plain[end..])
        }
        _ => script.to_owned(),
    }
}

/// Goes behind the script for fish. An option with a value takes what is registered for it alone.
const FISH: &str = r#"
# Keyspaces of the store on the line, figures, and what stands in specs of policies and workloads.
function __fish_lsmith_values
    set -l words (commandline -opc) (commandline -ct)
    command $words[1] completions fish -- $words 2>/dev/null
end
for option in policy policies compare-to workload keyspace
    complete -c lsmith -l $option -x -a '(__fish_lsmith_values)'
end
complete -c lsmith -a '(__fish_lsmith_values)'
"#;

/// Goes into the script for zsh.
const ZSH: &str = r#"
# Keyspaces of the store on the line, figures, and what stands in specs of policies and workloads.
_lsmith() {
    local -a found end
    found=(${(f)"$("${words[1]}" completions zsh -- "${(@)words[1,CURRENT]}" 2>/dev/null)"})
    if (( ! $#found )); then
        _lsmith_plain "$@"
        return
    fi
    # More of a spec follows.
    [[ "$found" == *[\(=]* ]] && end=(-S '')
    compset -P '--*='
    compadd $end -- $found
}
"#;

/// Goes behind the script for bash.
const BASH: &str = r#"
# Keyspaces of the store on the line, and what stands in specs of policies and workloads.
_lsmith_with_values() {
    COMPREPLY=()
    local found
    while IFS= read -r found; do
        COMPREPLY+=("$found")
    done < <("${COMP_WORDS[0]}" completions bash -- "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -gt 0 ]]; then
        # More of a spec follows.
        [[ ${COMPREPLY[*]} == *[\(=]* ]] && compopt -o nospace 2>/dev/null
    else
        _lsmith "$@"
    fi
}
complete -F _lsmith_with_values -o bashdefault -o default lsmith
"#;

/// A list of names with the parameters of each.
struct Kind {
    names: Vec<&'static str>,
    /// Returns the parameters of a name, each with its default.
    params: fn(&str) -> Vec<(&'static str, &'static str)>,
    /// Returns the names that a parameter of a spec takes, if it takes names.
    choices: fn(&Spec, &str) -> Vec<String>,
}

/// Returns what the last of `words` can become, as far as that depends on specs or on a store. The
/// first word is the command itself. Words may be quoted, with the end of the quote missing.
pub(crate) fn candidates(words: &[String]) -> Vec<String> {
    let plain: Vec<String> = words.iter().map(|word| unquoted(word)).collect();
    let Some((last, before)) = plain.split_last() else { return Vec::new() };
    // bash cuts `--policy=tiered` at the sign. Others take the part behind it.
    let whole = last.starts_with("--").then(|| last.split_once('=')).flatten();
    let (option, last) = match (last.as_str(), before) {
        ("=", [.., option]) => (option.as_str(), ""),
        (last, [.., option, sign]) if sign == "=" => (option.as_str(), last),
        (last, before) => whole.unwrap_or((before.last().map_or("", String::as_str), last)),
    };
    let command = before.get(1).map_or("", String::as_str);
    match (option, command) {
        ("--policy" | "--policies" | "--compare-to", command) if command != "model" => {
            spec(&policies(), last)
        }
        ("--workload", _) => spec(&workloads(), last),
        ("--keyspace", _) => keyspaces(before, last),
        ("policy", "db") => spec(&policies(), last),
        (option, _) if last.starts_with('-') || option.starts_with("--") => Vec::new(),
        (_, "explain" | "laws") => spec(&policies(), last),
        (_, "reproduce") => {
            let names = FIGURES.iter().map(|figure| figure.name.to_owned());
            names.filter(|name| name.starts_with(last)).collect()
        }
        _ => Vec::new(),
    }
}

fn policies() -> Kind {
    Kind {
        names: specs::registry().infos().iter().map(|info| info.name).collect(),
        params: |name| {
            let info = specs::registry().infos().iter().find(|info| info.name == name);
            let params = info.into_iter().flat_map(|info| info.params);
            params.map(|param| (param.name, param.default)).collect()
        },
        choices: |spec, param| {
            // No choice has this name. The refusal has the names that there are.
            match specs::registry().build_spec(&spec.clone().with(param, "?")) {
                Err(SpecError::Unknown { what, known, .. }) if what == "value" => known,
                _ => Vec::new(),
            }
        },
    }
}

fn workloads() -> Kind {
    Kind {
        names: Workload::INFOS.iter().map(|info| info.name).collect(),
        params: |name| {
            let info = Workload::INFOS.iter().find(|info| info.name == name);
            let own = info.into_iter().flat_map(|info| info.params);
            let all = own.chain(WorkloadInfo::COMMON);
            all.map(|param| (param.name, param.default.unwrap_or_default())).collect()
        },
        choices: |_, _| Vec::new(),
    }
}

/// Returns what the last spec of the list `text` can become, with all that is before it.
fn spec(kind: &Kind, text: &str) -> Vec<String> {
    let start = text.rfind(';').map_or(0, |at| at + 1);
    let start = start + text[start..].len() - text[start..].trim_start().len();
    let (before, own) = text.split_at(start);
    let found = match own.split_once('(') {
        None => names(kind, own),
        Some((name, arguments)) => params(kind, name, arguments),
    };
    found.into_iter().map(|found| format!("{before}{found}")).collect()
}

fn names(kind: &Kind, begun: &str) -> Vec<String> {
    let fitting = kind.names.iter().filter(|name| name.starts_with(begun));
    let with_params = |name: &&'static str| {
        let opened = (!(kind.params)(name).is_empty()).then(|| format!("{name}("));
        std::iter::once((*name).to_owned()).chain(opened)
    };
    fitting.flat_map(with_params).collect()
}

fn params(kind: &Kind, name: &str, arguments: &str) -> Vec<String> {
    let start = arguments.rfind(',').map_or(0, |at| at + 1);
    let start = start + arguments[start..].len() - arguments[start..].trim_start().len();
    let (before, own) = arguments.split_at(start);
    let given = |param: &str| {
        before.split(',').any(|one| one.split('=').next().is_some_and(|it| it.trim() == param))
    };
    let head = format!("{name}({before}");
    if let Some((param, begun)) = own.split_once('=') {
        let choices = (kind.choices)(&Spec::bare(name), param);
        let fitting = choices.into_iter().filter(|choice| choice.starts_with(begun));
        return fitting.map(|choice| format!("{head}{param}={choice}")).collect();
    }
    let all = (kind.params)(name);
    let fitting = all.into_iter().filter(|(param, _)| param.starts_with(own) && !given(param));
    // Two candidates each: with one alone, a shell would close the quote behind it.
    let both = |(param, default): (&str, &str)| {
        let named = format!("{head}{param}=");
        let with_default = (!default.is_empty()).then(|| format!("{named}{default}"));
        std::iter::once(named).chain(with_default)
    };
    fitting.flat_map(both).collect()
}

/// Returns the keyspaces of the store that the line names: behind `--dir`, or behind `db`.
fn keyspaces(before: &[String], begun: &str) -> Vec<String> {
    let behind = |word: &str| {
        let at = before.iter().position(|other| other == word)?;
        before[at + 1..].iter().find(|word| !word.starts_with('-'))
    };
    let Some(dir) = behind("--dir").or_else(|| behind("db")) else { return Vec::new() };
    let trees = lsmith::inspect::trees(&RealEnv::new(), &at_home(dir)).unwrap_or_default();
    let names = trees.into_iter().flat_map(|it| it.members.unwrap_or_else(|| vec![it.name]));
    names.filter(|name| name.starts_with(begun)).collect()
}

/// Returns the path that a shell makes of `text`.
fn at_home(text: &str) -> PathBuf {
    match (text.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(text),
    }
}

/// Returns a word without the quotes and backslashes of a shell.
fn unquoted(word: &str) -> String {
    let mut plain = String::new();
    let mut quote = None;
    let mut chars = word.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            ('\\', None | Some('"')) => plain.extend(chars.next()),
            (c, _) => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &[&str]) -> Vec<String> {
        let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        candidates(&words)
    }

    #[test]
    fn names_and_parameters_of_policies_are_completed() {
        assert_eq!(of(&["lsmith", "tune", "--policy", "'tie"]), ["tiered", "tiered("]);
        let ratio = ["tiered(ratio=", "tiered(ratio=4"];
        assert_eq!(of(&["lsmith", "tune", "--policy", "'tiered(ra"]), ratio);
        assert_eq!(of(&["lsmith", "laws", "tiered(ra"]), ratio);
        let found = of(&["lsmith", "compare", "--policies", "\"none; leveled(ratio=4, pi"]);
        let start = "none; leveled(ratio=4, pick=";
        assert_eq!(found, [start.to_owned(), format!("{start}min_overlap")]);
        let oldest = ["leveled(pick=oldest", "leveled(pick=oldest_smallest"];
        let found = of(&["lsmith", "compare", "--policies", "=", "leveled(pick=o"]);
        assert_eq!(found, oldest);
        assert_eq!(of(&["lsmith", "compare", "--policies='leveled(pick=o"]), oldest);
        assert_eq!(of(&["lsmith", "compare", "--policies", "="])[0], "none");
        // What is given already is no candidate.
        assert!(of(&["lsmith", "laws", "leveled(ratio=4, ratio"]).is_empty());
        assert!(of(&["lsmith", "laws", "--js"]).is_empty(), "an option");
    }

    #[test]
    fn names_and_parameters_of_workloads_are_completed() {
        let found = of(&["lsmith", "tune", "--workload", "'chu"]);
        assert_eq!(found, ["churn", "churn("]);
        let found = of(&["lsmith", "tune", "--workload", "'load(keys=1k, comp"]);
        assert!(found[0] == "load(keys=1k, compressible=", "{found:?}");
    }

    #[test]
    fn words_lose_their_quotes() {
        for (word, plain) in [("'a b", "a b"), ("\"a\\\"b\"", "a\"b"), ("a\\ b", "a b"), ("~", "~")]
        {
            assert_eq!(unquoted(word), plain);
        }
    }
}
