//! Numbers and strings as specs of Tectonic describe them.

use super::json::Json;
use crate::{Rng, Zipf};

/// Longest string.
const STRING_BYTES_MAX: f64 = (1 << 20) as f64;

/// A number, the same each time or drawn.
#[derive(Clone, Debug)]
pub(super) enum Number {
    Constant(f64),
    Uniform { min: f64, max: f64 },
    Normal { mean: f64, deviation: f64 },
    LogNormal { mean: f64, deviation: f64 },
    Exponential { lambda: f64 },
    Weibull { scale: f64, shape: f64 },
    Pareto { scale: f64, shape: f64 },
    Beta { alpha: f64, beta: f64 },
    Poisson { lambda: f64 },
    Zipf(Zipf, u64),
}

impl Number {
    /// Reads a number or an object of one distribution.
    pub(super) fn read(json: &Json) -> Result<Number, String> {
        let expected = "a number, or an object with one distribution";
        let Json::Object(fields) = json else {
            let Json::Number(number) = json else {
                return Err(format!("expected {expected}, found {}", json.kind()));
            };
            return Ok(Number::Constant(*number));
        };
        let [(name, json)] = &fields[..] else {
            return Err(format!("expected {expected}, found {} of them", fields.len()));
        };
        let any = |field: &str| match json.get(field) {
            Some(Json::Number(number)) => Ok(*number),
            other => {
                let found = other.map_or("nothing", Json::kind);
                Err(format!("`{name}` needs the number `{field}`, found {found}"))
            }
        };
        let positive = |field: &str| {
            let number = any(field)?;
            let message = || format!("`{field}` of `{name}` is {number}: expected more than 0");
            if number > 0.0 { Ok(number) } else { Err(message()) }
        };
        Ok(match name.as_str() {
            "uniform" => Number::Uniform { min: any("min")?, max: any("max")? },
            "normal" => Number::Normal { mean: any("mean")?, deviation: any("std_dev")? },
            "log_normal" => Number::LogNormal { mean: any("mean")?, deviation: any("std_dev")? },
            "exponential" => Number::Exponential { lambda: positive("lambda")? },
            "weibull" => Number::Weibull { scale: positive("scale")?, shape: positive("shape")? },
            "pareto" => Number::Pareto { scale: positive("scale")?, shape: positive("shape")? },
            "beta" => Number::Beta { alpha: positive("alpha")?, beta: positive("beta")? },
            "poisson" => Number::Poisson { lambda: positive("lambda")? },
            "zipf" => {
                let (ranks, skew) = (positive("n")?.clamp(1.0, 4e9) as u64, any("s")?);
                if !(0.0..=100.0).contains(&skew) {
                    return Err(format!("`s` of `zipf` is {skew}: expected 0 to 100"));
                }
                Number::Zipf(Zipf::new(ranks, skew), ranks)
            }
            _ => {
                let known = "uniform, normal, log_normal, exponential, weibull, pareto, beta, \
                             poisson or zipf";
                return Err(format!("unknown distribution `{name}`; expected {known}"));
            }
        })
    }

    pub(super) fn draw(&self, rng: &mut Rng) -> f64 {
        match *self {
            Number::Constant(number) => number,
            Number::Uniform { min, max } => min + (max - min) * rng.unit(),
            Number::Normal { mean, deviation } => mean + deviation * gauss(rng),
            Number::LogNormal { mean, deviation } => (mean + deviation * gauss(rng)).exp(),
            Number::Exponential { lambda } => -positive_unit(rng).ln() / lambda,
            Number::Weibull { scale, shape } => {
                scale * (-positive_unit(rng).ln()).powf(1.0 / shape)
            }
            Number::Pareto { scale, shape } => scale / positive_unit(rng).powf(1.0 / shape),
            Number::Beta { alpha, beta } => {
                let (left, right) = (gamma(alpha, rng), gamma(beta, rng));
                if left + right > 0.0 { left / (left + right) } else { 0.5 }
            }
            Number::Poisson { lambda } if lambda > 500.0 => {
                (lambda + lambda.sqrt() * gauss(rng)).round().max(0.0)
            }
            Number::Poisson { lambda } => {
                let (end, mut product, mut count) = ((-lambda).exp(), rng.unit(), 0.0);
                while product > end {
                    product *= rng.unit();
                    count += 1.0;
                }
                count
            }
            Number::Zipf(ref zipf, _) => zipf.draw(rng) as f64 + 1.0,
        }
    }

    /// Draws a place among `count` things, at least one: the number is the part
    /// of them in front of the place. Of a Zipf distribution it is the rank over the ranks.
    pub(super) fn place(&self, count: usize, rng: &mut Rng) -> usize {
        let part = match self {
            Number::Zipf(zipf, ranks) => zipf.draw(rng) as f64 / *ranks as f64,
            number => number.draw(rng),
        };
        ((part.clamp(0.0, 1.0) * count as f64) as usize).min(count - 1)
    }
}

/// Draws from 0 to 1 without 0.
fn positive_unit(rng: &mut Rng) -> f64 {
    1.0 - rng.unit()
}

/// Draws from the standard normal distribution, by the method of Box and Muller.
fn gauss(rng: &mut Rng) -> f64 {
    (-2.0 * positive_unit(rng).ln()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos()
}

/// Draws from the gamma distribution of `shape`, by the method of Marsaglia and Tsang.
fn gamma(shape: f64, rng: &mut Rng) -> f64 {
    if shape < 1.0 {
        return gamma(shape + 1.0, rng) * positive_unit(rng).powf(1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = gauss(rng);
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && positive_unit(rng).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

/// How strings are made.
#[derive(Clone, Debug)]
pub(super) enum Text {
    Constant(String),
    Uniform { length: Number, letters: Option<Letters> },
    Weighted { items: Vec<(f64, Text)> },
    Segmented { separator: String, segments: Vec<Text> },
    HotRange { hot: Vec<Vec<u8>>, length: usize, probability: f64 },
}

/// A set of letters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Letters(&'static [u8]);

impl Letters {
    const ALPHANUMERIC: Letters =
        Letters(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789");

    /// Reads `character_set` of `json`, if it is there.
    pub(super) fn read(json: &Json) -> Result<Option<Letters>, String> {
        let all = Letters::ALPHANUMERIC.0;
        match json.get("character_set") {
            None => Ok(None),
            Some(Json::Text(name)) => match name.as_str() {
                "alphanumeric" => Ok(Some(Letters::ALPHANUMERIC)),
                "alphabetic" => Ok(Some(Letters(&all[..52]))),
                "numeric" => Ok(Some(Letters(&all[52..]))),
                other => Err(format!(
                    "unknown character_set `{other}`; expected alphanumeric, alphabetic or numeric"
                )),
            },
            Some(other) => Err(format!("character_set is {}: expected text", other.kind())),
        }
    }
}

impl Text {
    /// Reads text, or an object that says how to make some. Hot ranges are drawn here.
    pub(super) fn read(json: &Json, rng: &mut Rng) -> Result<Text, String> {
        let fields = match json {
            Json::Text(text) => return Ok(Text::Constant(text.clone())),
            Json::Object(fields) => &fields[..],
            other => return Err(format!("expected text or an object, found {}", other.kind())),
        };
        let [(name, inner)] = fields else {
            return Err(format!("expected one way to make text, found {}", fields.len()));
        };
        let needs = |field: &str| {
            inner.get(field).ok_or_else(|| format!("`{name}` needs `{field}`, found nothing"))
        };
        let list = |json: &Json| match json {
            Json::List(list) if !list.is_empty() => Ok(list.clone()),
            other => Err(format!("`{name}` needs a list with something, found {}", other.kind())),
        };
        let number = |field: &str| Number::read(needs(field)?);
        Ok(match name.as_str() {
            "uniform" => Text::Uniform { length: number("len")?, letters: Letters::read(inner)? },
            "weighted" => {
                let mut items = Vec::new();
                for item in list(inner)? {
                    let Some(Json::Number(weight)) = item.get("weight") else {
                        return Err("each of `weighted` needs the number `weight`".to_owned());
                    };
                    let value = item.get("value").ok_or("each of `weighted` needs `value`")?;
                    items.push((weight.max(0.0), Text::read(value, rng)?));
                }
                Text::Weighted { items }
            }
            "segmented" => {
                let Json::Text(separator) = needs("separator")? else {
                    return Err("`separator` of `segmented` is no text".to_owned());
                };
                let segments = list(needs("segments")?)?;
                let segments = segments.iter().map(|segment| Text::read(segment, rng));
                let segments = segments.collect::<Result<_, _>>()?;
                Text::Segmented { separator: separator.clone(), segments }
            }
            "hot_range" => {
                let [length, amount] =
                    ["len", "amount"].map(|field| number(field).map(|n| n.draw(rng)));
                let length = length?.clamp(0.0, 1000.0) as usize;
                let amount = amount?.clamp(1.0, 10_000.0) as usize;
                let probability = number("probability")?.draw(rng);
                let mut range = || letters(Letters::ALPHANUMERIC, length, rng);
                let hot = (0..amount).map(|_| range()).collect();
                Text::HotRange { hot, length, probability }
            }
            _ => {
                let known = "uniform, weighted, segmented or hot_range";
                return Err(format!("unknown way to make text `{name}`; expected {known}"));
            }
        })
    }

    /// Makes a string behind `made`. `set` has its letters, unless the text itself says which.
    pub(super) fn draw(&self, set: Option<Letters>, rng: &mut Rng, made: &mut Vec<u8>) {
        match self {
            Text::Constant(text) => made.extend_from_slice(text.as_bytes()),
            Text::Uniform { length, letters: own } => {
                let length = length.draw(rng).clamp(0.0, STRING_BYTES_MAX) as usize;
                let set = own.or(set).unwrap_or(Letters::ALPHANUMERIC);
                made.extend(letters(set, length, rng));
            }
            Text::Weighted { items } => {
                let mut left = rng.unit() * items.iter().map(|(weight, _)| weight).sum::<f64>();
                let chosen = items.iter().find(|(weight, _)| {
                    left -= weight;
                    left < 0.0
                });
                let (_, text) = chosen.unwrap_or(&items[items.len() - 1]);
                text.draw(None, rng, made);
            }
            Text::Segmented { separator, segments } => {
                for (at, segment) in segments.iter().enumerate() {
                    if at > 0 {
                        made.extend_from_slice(separator.as_bytes());
                    }
                    segment.draw(None, rng, made);
                }
            }
            Text::HotRange { hot, length, probability } => {
                if rng.unit() < *probability {
                    made.extend_from_slice(&hot[rng.below(hot.len() as u64) as usize]);
                } else {
                    made.extend(letters(Letters::ALPHANUMERIC, *length, rng));
                }
            }
        }
    }
}

fn letters(set: Letters, length: usize, rng: &mut Rng) -> Vec<u8> {
    (0..length).map(|_| set.0[rng.below(set.0.len() as u64) as usize]).collect()
}
