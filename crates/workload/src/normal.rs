//! `normal`: inserts in a cluster that moves, removes anywhere.

use lsmith_spec::{Params, Spec, SpecError, format_count};

use crate::Rng;
use crate::info::{ParamUnit, WorkloadInfo, param};
use crate::keys::KeySpace;
use crate::parts::Parts;
use crate::present::PresentKeys;
use crate::steady::{DELETES, DOMAIN, KEYS, OPS, SOURCE, STEADY_VALUE, WEIGH};
use crate::steady::{InsertKeys, Purpose, Steady, SteadyOps, domain};

/// Draws in vain after which a place counts as crowded. Half full, it does once in 65 thousand
/// inserts.
const DRAWS_MAX: u32 = 16;

/// *Normal* of Thonangi & Yang: inserts keys of a normal distribution cut off at the ends of the
/// domain, whose mean moves to a place drawn uniformly before the first insert and after every
/// `omega` inserts; removes any present key with equal chance.
///
/// `sigma` is the standard deviation as a share of the domain. A present key is drawn again; from
/// the seventeenth draw for one insert on, each is from a distribution half as wide again as the
/// one before, so that crowded places take little longer.
#[derive(Clone, Debug)]
pub(crate) struct Normal {
    sigma: f64,
    omega: u64,
    domain: u32,
    steady: Steady,
}

impl Normal {
    pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
        name: "normal",
        summary: "inserts around a mean that moves, and removes any present key",
        source: SOURCE,
        argument: None,
        params: &[
            param("sigma", ParamUnit::Number, "the standard deviation as a share of the domain")
                .or("0.005"),
            param("omega", ParamUnit::Count, "the number of inserts after which the mean moves")
                .or("10k"),
            DOMAIN,
            KEYS,
            OPS,
            DELETES,
            STEADY_VALUE,
            WEIGH,
        ],
        example: "normal(sigma=0.01, omega=1k, keys=5k, ops=20k)",
    };

    pub(crate) fn build(params: &Params) -> Result<Parts<Self>, SpecError> {
        let sigma = params.real("sigma", 0.005, 0.0..=1.0)?;
        let omega = params.count("omega", 10_000, 1..)?;
        let steady = Steady::from_params(params)?;
        let domain = domain(params, &steady)?;
        let spec = Spec::bare("normal")
            .with("sigma", sigma)
            .with("omega", format_count(omega))
            .with("domain", format_count(domain.into()));
        Ok(Parts {
            spec: steady.spell(spec),
            generator: Self { sigma, omega, domain, steady },
            keys: KeySpace::Number,
            items: domain.into(),
        })
    }

    pub(crate) fn steady(&self) -> &Steady {
        &self.steady
    }

    pub(crate) fn ops(&self, seed: u64) -> NormalOps {
        let inserts = NormalKeys {
            domain: self.domain,
            deviation: self.sigma * f64::from(self.domain),
            omega: self.omega,
            inserts_left: 0,
            mean: 0.0,
            means: Purpose::Means.rng(seed),
            draws: Gauss { rng: Purpose::Inserts.rng(seed), spare: None },
        };
        SteadyOps::new(&self.steady, self.domain, inserts, seed)
    }
}

pub(crate) type NormalOps = SteadyOps<NormalKeys>;

#[derive(Clone, Debug)]
pub(crate) struct NormalKeys {
    domain: u32,
    /// Standard deviation in keys.
    deviation: f64,
    omega: u64,
    /// Inserts until the mean moves.
    inserts_left: u64,
    mean: f64,
    means: Rng,
    draws: Gauss,
}

impl InsertKeys for NormalKeys {
    #[inline]
    fn insert(&mut self, present: &mut PresentKeys) -> u32 {
        let domain = f64::from(self.domain);
        if self.inserts_left == 0 {
            self.inserts_left = self.omega;
            self.mean = self.means.unit() * domain;
        }
        self.inserts_left -= 1;
        let mut deviation = self.deviation;
        let mut vain = 0;
        loop {
            let place = self.mean + deviation * self.draws.draw();
            if !(0.0..domain).contains(&place) {
                continue;
            }
            if present.insert(place as u32) {
                return place as u32;
            }
            vain += 1;
            if vain >= DRAWS_MAX {
                deviation = (deviation.max(1.0) * 1.5).min(domain);
            }
        }
    }
}

/// Draws from the standard normal distribution by Marsaglia's polar method ("A convenient method
/// for generating normal variables", 1964), which gives two at a time.
#[derive(Clone, Debug)]
struct Gauss {
    rng: Rng,
    spare: Option<f64>,
}

impl Gauss {
    #[inline]
    fn draw(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let x = 2.0 * self.rng.unit() - 1.0;
            let y = 2.0 * self.rng.unit() - 1.0;
            let square = x * x + y * y;
            if square < 1.0 && square > 0.0 {
                let scale = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(y * scale);
                return x * scale;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauss_has_the_moments_and_the_shares_of_the_normal_distribution() {
        const DRAWS: usize = 200_000;
        let mut gauss = Gauss { rng: Rng::new(1, 0), spare: None };
        let drawn: Vec<f64> = (0..DRAWS).map(|_| gauss.draw()).collect();
        let moment = |power| drawn.iter().map(|x| x.powi(power)).sum::<f64>() / DRAWS as f64;
        for (power, expected, noise) in
            [(1, 0.0, 0.01), (2, 1.0, 0.015), (3, 0.0, 0.04), (4, 3.0, 0.1)]
        {
            let found = moment(power);
            assert!((found - expected).abs() < noise, "moment {power}: {found}");
        }
        for (bound, expected) in [(-1.0, 0.1587), (0.5, 0.6915), (2.0, 0.9772)] {
            let below = drawn.iter().filter(|&&x| x < bound).count() as f64 / DRAWS as f64;
            assert!((below - expected).abs() < 0.005, "below {bound}: {below}");
        }
    }
}
