//! Placement of members on hosts.

use landeck_collectives::Way;

use crate::error::SimulationError;
use crate::platform::Platform;
use crate::setting::{Calls, Placement, Setting, Work};

/// Placement of members on hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hosts {
    /// Members on each host but the last, which may have fewer.
    pub(crate) per_host: u32,
    /// Hosts with members.
    pub(crate) count: u32,
    /// Whether neighbours are on different hosts.
    is_spread: bool,
}

/// How members share a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sharing {
    /// The number of members on one processor.
    pub(crate) of_processor: u32,
    /// The size of its last cache.
    pub(crate) cache_bytes: u64,
}

impl Sharing {
    /// `of_processor` members that share a processor with the usual cache.
    pub(crate) fn of(of_processor: u32) -> Self {
        let usual = landeck_collectives::CostParameters::default();
        Self { of_processor, cache_bytes: usual.cache_bytes() }
    }
}

impl Hosts {
    pub(crate) fn of(work: &Work<'_>, setting: &Setting<'_>) -> Result<Self, SimulationError> {
        let (size, platform) = (work.group.size(), setting.platform);
        let hosts = platform.hosts();
        let per_host = match (setting.placement, &platform.network) {
            (Placement::PerHost(per_host), _) => per_host,
            (Placement::Spread, _) => size.div_ceil(hosts),
            (Placement::Usual, Some(_)) => platform.host.processors,
            (Placement::Usual, None) => size,
        };
        if per_host == 0 {
            return Err(SimulationError::NobodyOnHosts);
        }
        let is_spread = setting.placement == Placement::Spread;
        let count = if is_spread { size.min(hosts) } else { size.div_ceil(per_host) };
        if count > hosts {
            let (needed, platform) = (count, platform.name.clone());
            return Err(SimulationError::NoRoom {
                processes: size,
                per_host,
                needed,
                platform,
                hosts,
            });
        }
        let needs_board =
            matches!(work.way, Way::Board(_)) || matches!(setting.calls, Calls::Measured { .. });
        if count > 1 && needs_board {
            return Err(SimulationError::NoBoard { processes: size, hosts: count });
        }
        let hosts = Self { per_host, count, is_spread };
        if !hosts.have_boards(work, setting) {
            return Err(SimulationError::NoBoard { processes: size, hosts: count });
        }
        Ok(hosts)
    }

    /// Whether members that share a board are on one host, in a way over the boards of hosts.
    fn have_boards(self, work: &Work<'_>, setting: &Setting<'_>) -> bool {
        let Way::Hosts { .. } = work.way else { return true };
        let boards = work.group.hosts();
        let is_measured = matches!(setting.calls, Calls::Measured { .. });
        let is_one =
            |board: &Vec<u32>| board.iter().all(|&member| self.host(member) == self.host(board[0]));
        !is_measured && boards.iter().all(is_one)
    }

    /// How `size` members share the processors of a host.
    pub(crate) fn sharing(self, size: u32, platform: &Platform) -> Sharing {
        let of_processor = self.per_host.min(size).div_ceil(platform.host.processors.max(1));
        Sharing { of_processor, cache_bytes: platform.host.figures.cache_bytes() }
    }

    /// The members of a host.
    pub(crate) fn members(self, host: u32, size: u32) -> impl Iterator<Item = u32> {
        let (first, step, end) = match self.is_spread {
            true => (host, self.count, size),
            false => (host * self.per_host, 1, size.min((host + 1).saturating_mul(self.per_host))),
        };
        (first..end).step_by(step as usize)
    }

    /// The host of a member.
    pub(crate) const fn host(&self, member: u32) -> u32 {
        if self.is_spread { member % self.count } else { member / self.per_host }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_members_say_the_same() {
        for (is_spread, of_host_one) in [(true, vec![1, 5]), (false, vec![2, 3])] {
            let hosts = Hosts { per_host: 2, count: 4, is_spread };
            assert_eq!(hosts.members(1, 7).collect::<Vec<_>>(), of_host_one);
            for host in 0..4 {
                assert!(hosts.members(host, 7).all(|member| hosts.host(member) == host));
            }
        }
    }
}
