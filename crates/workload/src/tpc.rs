//! `tpc`: orders are inserted at the ends of many districts and removed from their fronts.

use lsmith_spec::{Params, Spec, SpecError, format_count};

use crate::info::{ParamUnit, WorkloadInfo, param};
use crate::keys::KeySpace;
use crate::parts::{KEYS_MAX, Parts};
use crate::steady::{DELETES, KEYS, OPS, Purpose, SOURCE, STEADY_VALUE, Steady, WEIGH};
use crate::{Op, Rng};

/// Orders that one transaction delivers.
const DELIVERED: u32 = 10;

/// Districts that a delivery tries.
const DRAWS_MAX: u32 = 16;

/// *TPC* of Thonangi & Yang, which is the table NEW_ORDER of TPC-C: one kind of transaction
/// inserts an order at a random warehouse and district under the next order id there, the other
/// one removes the ten oldest orders of a random district.
///
/// As a delivery is ten requests, deliveries are `deletes` / (10 - 9 `deletes`) of the
/// transactions of the run phase, so that `deletes` is the share of requests as elsewhere: one in
/// eleven at one half. A district with fewer than ten orders is drawn again; when sixteen in a row
/// have fewer, an order is inserted instead. The end of the stream may cut a delivery short.
///
/// A key is one number, (warehouse x districts + district) x orders + order id, all from 0, where
/// each district has room for `orders` order ids, its share of 32 bits. A district that has used
/// up its order ids passes new orders on to the next one.
#[derive(Clone, Debug)]
pub(crate) struct Tpc {
    /// Of all warehouses together.
    districts: u64,
    /// Order ids of each district.
    orders: u64,
    steady: Steady,
}

impl Tpc {
    pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
        name: "tpc",
        summary: "inserts orders in random districts, and removes the ten oldest of a district",
        source: SOURCE,
        argument: None,
        params: &[
            param("warehouses", ParamUnit::Count, "the number of warehouses, 1 to 10k").or("100"),
            param("districts", ParamUnit::Count, "the districts of each warehouse, 1 to 100")
                .or("10"),
            KEYS,
            OPS,
            DELETES,
            STEADY_VALUE,
            WEIGH,
        ],
        example: "tpc(warehouses=10, keys=5k, ops=20k)",
    };

    pub(crate) fn build(params: &Params) -> Result<Parts<Self>, SpecError> {
        let warehouses = params.count("warehouses", 100, 1..=10_000)?;
        let of_each = params.count("districts", 10, 1..=100)?;
        let steady = Steady::from_params(params)?;
        let districts = warehouses * of_each;
        let orders = KEYS_MAX / districts;
        if steady.ops_max() > districts * orders {
            let ops = steady.ops_max();
            let room = districts * orders;
            let message = format!("{ops} operations may need more than the {room} order ids");
            return Err(SpecError::conflict(message));
        }
        let spec = Spec::bare("tpc")
            .with("warehouses", format_count(warehouses))
            .with("districts", format_count(of_each));
        Ok(Parts {
            spec: steady.spell(spec),
            generator: Self { districts, orders, steady },
            keys: KeySpace::Number,
            items: districts * orders,
        })
    }

    pub(crate) fn steady(&self) -> &Steady {
        &self.steady
    }

    pub(crate) fn ops(&self, seed: u64) -> TpcOps {
        let deletes = self.steady.deletes();
        TpcOps {
            tpc: self.clone(),
            deliveries: deletes / (10.0 - 9.0 * deletes),
            made: 0,
            present: vec![Orders::default(); self.districts as usize],
            delivery: Delivery::default(),
            kinds: Purpose::Kinds.rng(seed),
            inserts: Purpose::Inserts.rng(seed),
            removes: Purpose::Removes.rng(seed),
        }
    }
}

/// The orders of a district: ids `oldest`..`next`.
#[derive(Clone, Copy, Debug, Default)]
struct Orders {
    oldest: u32,
    next: u32,
}

/// The orders that a delivery still has to remove.
#[derive(Clone, Copy, Debug, Default)]
struct Delivery {
    district: usize,
    orders_left: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct TpcOps {
    tpc: Tpc,
    /// Share of the transactions.
    deliveries: f64,
    made: u64,
    present: Vec<Orders>,
    delivery: Delivery,
    kinds: Rng,
    inserts: Rng,
    removes: Rng,
}

impl TpcOps {
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Op> {
        if self.made == self.tpc.steady.ops_max() {
            return None;
        }
        let runs = self.made >= self.tpc.steady.load_ops();
        self.made += 1;
        if self.delivery.orders_left == 0 && runs && self.kinds.unit() < self.deliveries {
            self.start_delivery();
        }
        Some(if self.delivery.orders_left > 0 { self.deliver() } else { self.enter() })
    }

    fn start_delivery(&mut self) {
        for _ in 0..DRAWS_MAX {
            let district = self.removes.below(self.tpc.districts) as usize;
            let Orders { oldest, next } = self.present[district];
            if next - oldest >= DELIVERED {
                self.delivery = Delivery { district, orders_left: DELIVERED };
                return;
            }
        }
    }

    fn deliver(&mut self) -> Op {
        self.delivery.orders_left -= 1;
        let district = self.delivery.district;
        let order = self.present[district].oldest;
        self.present[district].oldest += 1;
        self.tpc.steady.remove(self.item(district, order))
    }

    fn enter(&mut self) -> Op {
        let mut district = self.inserts.below(self.tpc.districts) as usize;
        // All order ids together outnumber the operations, so some district has one.
        while u64::from(self.present[district].next) == self.tpc.orders {
            district = (district + 1) % self.present.len();
        }
        let order = self.present[district].next;
        self.present[district].next += 1;
        self.tpc.steady.insert(self.item(district, order))
    }

    fn item(&self, district: usize, order: u32) -> u64 {
        district as u64 * self.tpc.orders + u64::from(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_district_passes_orders_on() {
        let spec: Spec = "tpc(keys=10, ops=2, deletes=0)".parse().unwrap();
        let params = Tpc::INFO.params(&spec).unwrap();
        let steady = Steady::from_params(&params).unwrap();
        for seed in 0..50 {
            let mut ops = Tpc { districts: 3, orders: 4, steady: steady.clone() }.ops(seed);
            let mut items: Vec<u64> = std::iter::from_fn(|| ops.next()).map(|op| op.item).collect();
            items.sort_unstable();
            assert_eq!(items, (0..12).collect::<Vec<_>>(), "seed {seed}");
        }
    }
}
