//! `uniform`: inserts and removes anywhere in the key space.

use lsmith_spec::{Params, Spec, SpecError, format_count};

use crate::Rng;
use crate::info::WorkloadInfo;
use crate::keys::KeySpace;
use crate::parts::Parts;
use crate::present::PresentKeys;
use crate::steady::{DELETES, DOMAIN, KEYS, OPS, SOURCE, STEADY_VALUE, WEIGH};
use crate::steady::{InsertKeys, Purpose, Steady, SteadyOps, domain};

/// *Uniform* of Thonangi & Yang: inserts any absent key with equal chance, removes any present one
/// with equal chance. A present key is drawn again, so a domain that is almost full is slow.
#[derive(Clone, Debug)]
pub(crate) struct Uniform {
    domain: u32,
    steady: Steady,
}

impl Uniform {
    pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
        name: "uniform",
        summary: "inserts any absent key and removes any present key, with equal chance",
        source: SOURCE,
        argument: None,
        params: &[DOMAIN, KEYS, OPS, DELETES, STEADY_VALUE, WEIGH],
        example: "uniform(keys=5k, ops=20k)",
    };

    pub(crate) fn build(params: &Params) -> Result<Parts<Self>, SpecError> {
        let steady = Steady::from_params(params)?;
        let domain = domain(params, &steady)?;
        Ok(Parts {
            spec: steady.spell(Spec::bare("uniform").with("domain", format_count(domain.into()))),
            generator: Self { domain, steady },
            keys: KeySpace::Number,
            items: domain.into(),
        })
    }

    pub(crate) fn steady(&self) -> &Steady {
        &self.steady
    }

    pub(crate) fn ops(&self, seed: u64) -> UniformOps {
        let inserts = UniformKeys { domain: self.domain, rng: Purpose::Inserts.rng(seed) };
        SteadyOps::new(&self.steady, self.domain, inserts, seed)
    }
}

pub(crate) type UniformOps = SteadyOps<UniformKeys>;

#[derive(Clone, Debug)]
pub(crate) struct UniformKeys {
    domain: u32,
    rng: Rng,
}

impl InsertKeys for UniformKeys {
    #[inline]
    fn insert(&mut self, present: &mut PresentKeys) -> u32 {
        loop {
            let key = self.rng.below(self.domain.into()) as u32;
            if present.insert(key) {
                return key;
            }
        }
    }
}
