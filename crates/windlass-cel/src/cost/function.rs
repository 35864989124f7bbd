//! Estimates the costs of calls.

use super::estimate::{CallEstimate, EntrySize, Estimator, Node};
use super::range::Range;
use crate::ast::{Id, Kind, Literal};
use crate::evaluate::costs::{CHARACTER, LIST, MESSAGE, PATTERN};
use crate::types::Type;

impl CallEstimate {
    fn cost(cost: Range) -> Self {
        Self { cost, size: None }
    }

    fn sized(cost: Range, size: Range) -> Self {
        Self { cost, size: Some(size) }
    }

    fn one() -> Self {
        Self::cost(Range::fixed(1))
    }
}

impl Estimator<'_> {
    /// Estimates a call: the cost with that of the arguments.
    pub(super) fn function(
        &mut self,
        id: Id,
        name: &str,
        overload: &str,
        target: Option<&Node>,
        arguments: &[Node],
        costs: &[Range],
    ) -> CallEstimate {
        let sum = costs.iter().fold(Range::fixed(0), |sum, cost| sum.plus(*cost));
        match overload {
            "logical_or" | "logical_and" => {
                return CallEstimate::cost(Range { min: costs[0].min, max: costs[0].plus(costs[1]).max });
            }
            "conditional" => return self.conditional(id, arguments, costs),
            _ => {}
        }
        let known = self
            .extension(overload, target, arguments)
            .or_else(|| self.kubernetes(name, overload, target, arguments))
            .or_else(|| self.standard(id, overload, target, arguments))
            .unwrap_or_else(CallEstimate::one);
        CallEstimate { cost: known.cost.plus(sum), size: known.size }
    }

    fn conditional(&mut self, id: Id, arguments: &[Node], costs: &[Range]) -> CallEstimate {
        let (Some(truthy), Some(falsy)) = (arguments[1].id, arguments[2].id) else {
            return CallEstimate::one();
        };
        let size = computed(&arguments[1]).union(computed(&arguments[2]));
        let entry = EntrySize::union(self.entry_size(truthy), self.entry_size(falsy));
        self.set_entry_size(id, entry);
        CallEstimate::sized(costs[0].plus(costs[1].union(costs[2])), size)
    }

    /// Returns the size of a node, with the help of the hints.
    fn size_of(&self, node: &Node) -> Range {
        node.size.or_else(|| self.hint(&node.path, &node.known)).unwrap_or(Range::UNKNOWN)
    }

    /// Returns the element of a list as a node.
    fn element(node: &Node) -> Option<Node> {
        let known = (*node.known.parameters().first()?).clone();
        let path = if node.path.is_empty() { node.path.clone() } else { node.path.copied("@items") };
        Some(Node { id: None, path, known, size: None })
    }

    fn literal_int(&self, node: &Node) -> Option<i64> {
        match self.checked.ast.kind(node.id?) {
            Kind::Literal(Literal::Int(value)) => Some(*value),
            _ => None,
        }
    }

    /// Functions of cel-go's extensions.
    fn extension(&self, overload: &str, target: Option<&Node>, arguments: &[Node]) -> Option<CallEstimate> {
        let allocating = |factor: f64, size: Range| {
            CallEstimate::sized(size.scaled(factor).plus(Range::fixed(1)).plus(Range::fixed(LIST)), size)
        };
        let index =
            |node: &Node, default: u64| self.literal_int(node).map_or(default, |int| int.max(0) as u64);
        match overload {
            "list_sets_contains_list" | "list_sets_intersects_list" | "list_sets_equivalent_list" => {
                let product = self.size_of(&arguments[0]).times(self.size_of(&arguments[1]));
                let factor = if overload == "list_sets_equivalent_list" { 2.0 } else { 1.0 };
                return Some(CallEstimate::cost(product.scaled(factor).plus(Range::fixed(1))));
            }
            "lists_range" => return Some(allocating(1.0, Range::fixed(index(&arguments[0], u64::MAX)))),
            _ => {}
        }
        let target = target?;
        Some(match overload {
            "list_slice" => {
                let start = index(&arguments[0], 0);
                let end = index(&arguments[1], self.size_of(target).max);
                allocating(1.0, Range::fixed(end.wrapping_sub(start)))
            }
            "list_flatten" => allocating(1.0, self.size_of(target)),
            "list_flatten_int" => allocating(index(&arguments[0], u64::MAX) as f64, self.size_of(target)),
            "list_reverse" => allocating(1.0, self.size_of(target)),
            "list_distinct" => {
                let size = self.size_of(target);
                allocating(2.0, size.times(size))
            }
            _ if overload.ends_with("_sort") || overload.ends_with("_sortByAssociatedKeys") => {
                let keys = if overload.ends_with("_sort") { target } else { &arguments[0] };
                let size = self.size_of(keys);
                let textual = overload.starts_with("list_string") || overload.starts_with("list_bytes");
                allocating(if textual { 2.0 + CHARACTER } else { 2.0 }, size.times(size))
            }
            _ => return None,
        })
    }

    /// Functions of Kubernetes.
    fn kubernetes(
        &self,
        name: &str,
        overload: &str,
        target: Option<&Node>,
        arguments: &[Node],
    ) -> Option<CallEstimate> {
        let first = || arguments.first().map(|argument| self.size_of(argument));
        Some(match name {
            "check" => CallEstimate::cost(Range::fixed(350_000)),
            "fieldSelector" | "labelSelector" => CallEstimate::cost(selector(first()?)),
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => self.traversal(target?),
            "url" | "jsonpatch.escapeKey" => CallEstimate::sized(first()?.scaled(CHARACTER), first()?),
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                let size = self.size_of(target?);
                CallEstimate::sized(size.scaled(CHARACTER), size)
            }
            "replace" => {
                let size = self.size_of(target?);
                let replaced = replaced(size, self.size_of(&arguments[0]), self.size_of(arguments.get(1)?));
                CallEstimate::sized(size.scaled(2.0 * CHARACTER), replaced)
            }
            "split" => {
                let size = self.size_of(target?);
                let limit = arguments.get(1).and_then(|limit| self.literal_int(limit));
                let max = limit.map_or(size.max, |limit| limit as u64);
                CallEstimate::sized(size.scaled(2.0 * CHARACTER), Range { min: 0, max })
            }
            "join" => {
                let size = self.joined(target?, arguments);
                CallEstimate::sized(size.scaled(CHARACTER), size)
            }
            "find" | "findAll" => {
                let size = self.size_of(target?);
                let text = size.plus(Range::fixed(1)).scaled(CHARACTER);
                let cost = text.times(first()?.scaled(PATTERN));
                CallEstimate::sized(cost, Range { min: 0, max: size.max })
            }
            "ip" if overload == "cidr_ip" => return None,
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                CallEstimate::cost(first()?.scaled(CHARACTER))
            }
            "ip.isCanonical" => CallEstimate::cost(first()?.scaled(2.0 * CHARACTER)),
            "containsIP" | "containsCIDR" => {
                let size = Range { min: 4, max: 16 };
                let mut cost = size.plus(size).scaled(CHARACTER);
                if name == "containsCIDR" {
                    cost = cost.plus(size.scaled(CHARACTER)).plus(Range::fixed(1));
                }
                if overload.ends_with("_string") {
                    cost = cost.plus(first()?.scaled(CHARACTER));
                }
                CallEstimate::cost(cost)
            }
            "validate" => CallEstimate::cost(first()?.scaled(CHARACTER).scaled(128.0 * PATTERN)),
            "_==_" => return Self::equality(arguments),
            _ => return None,
        })
    }

    fn traversal(&self, target: &Node) -> CallEstimate {
        let Some(element) = Self::element(target) else {
            return CallEstimate::cost(self.size_of(target).scaled(CHARACTER));
        };
        let mut each = Range::fixed(1);
        if matches!(element.known, Type::String | Type::Bytes) {
            each = each.plus(self.size_of(&element).scaled(CHARACTER));
        }
        CallEstimate::cost(self.size_of(target).times(each))
    }

    fn joined(&self, target: &Node, arguments: &[Node]) -> Range {
        let list = self.size_of(target);
        let mut size = Range::fixed(0);
        if let Some(element) = Self::element(target) {
            size = list.times(self.size_of(&element));
        }
        if let Some(separator) = arguments.first() {
            let separators = Range { min: list.min.saturating_sub(1), max: list.max.saturating_sub(1) };
            size = size.plus(self.size_of(separator).times(separators));
        }
        size
    }

    /// Estimates the equality of values of the libraries.
    fn equality(arguments: &[Node]) -> Option<CallEstimate> {
        let [left, right] = arguments else { return None };
        if left.known != right.known {
            return None;
        }
        Some(match &left.known {
            Type::Opaque(_) => CallEstimate::one(),
            Type::Object("kubernetes.NamedFormat") => {
                CallEstimate::cost(Range { min: 1, max: 64 }.scaled(CHARACTER))
            }
            Type::Object("kubernetes.URL") => {
                let max = right.size.map_or(1, |size| size.max);
                CallEstimate::cost(Range { min: 1, max }.scaled(CHARACTER))
            }
            Type::Object(_) => CallEstimate::one(),
            _ => return None,
        })
    }

    /// Functions of the language.
    fn standard(
        &mut self,
        id: Id,
        overload: &str,
        target: Option<&Node>,
        arguments: &[Node],
    ) -> Option<CallEstimate> {
        let first = || arguments.first().map_or(Range::UNKNOWN, computed);
        Some(match overload {
            "string_format" => CallEstimate::cost(computed(target?).scaled(CHARACTER)),
            "string_to_bytes" => {
                let size = first();
                let result = Range { min: size.min, max: size.max.wrapping_mul(4) };
                CallEstimate::sized(size.scaled(CHARACTER), result)
            }
            "bytes_to_string" => {
                let size = first();
                CallEstimate::sized(size.scaled(CHARACTER), Range { min: size.min / 4, max: size.max })
            }
            "strings_quote" => {
                let size = first();
                let result =
                    Range { min: size.min.wrapping_add(2), max: size.max.wrapping_mul(2).wrapping_add(2) };
                CallEstimate::sized(size.scaled(CHARACTER), result)
            }
            "starts_with_string" | "ends_with_string" => CallEstimate::cost(first().scaled(CHARACTER)),
            "in_list" => CallEstimate::cost(computed(&arguments[1])),
            "matches_string" => {
                let text = computed(target?).plus(Range::fixed(1)).scaled(CHARACTER);
                CallEstimate::cost(text.times(first().scaled(PATTERN)))
            }
            "contains_string" => {
                CallEstimate::cost(computed(target?).scaled(CHARACTER).times(first().scaled(CHARACTER)))
            }
            "add_string" | "add_bytes" | "add_list" => self.sum(id, overload, arguments),
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes"
            | "equals"
            | "not_equals" => {
                let max = computed(&arguments[0]).max.min(computed(&arguments[1]).max);
                CallEstimate::cost(Range { min: u64::from(max > 0), max }.scaled(CHARACTER))
            }
            _ => return None,
        })
    }

    fn sum(&mut self, id: Id, overload: &str, arguments: &[Node]) -> CallEstimate {
        let size = computed(&arguments[0]).plus(computed(&arguments[1]));
        if let (Some(left), Some(right)) = (arguments[0].id, arguments[1].id) {
            let entry = EntrySize::union(self.entry_size(left), self.entry_size(right));
            self.set_entry_size(id, entry);
        }
        let cost = if overload == "add_list" { Range::fixed(1) } else { size.scaled(CHARACTER) };
        CallEstimate::sized(cost, size)
    }
}

/// Returns the size of a node that was computed with the node.
fn computed(node: &Node) -> Range {
    node.size.unwrap_or(Range::UNKNOWN)
}

fn selector(length: Range) -> Range {
    let requirements = length.scaled(0.5).scaled((LIST + MESSAGE) as f64);
    Range::fixed(LIST).plus(length.scaled(CHARACTER)).plus(requirements)
}

/// Returns the size of a text after a replacement.
fn replaced(size: Range, old: Range, new: Range) -> Range {
    let divided = |size: u64, by: u64| (size as f64 / by as f64).ceil() as u64;
    let (count_max, kept_max) = if old.min == 0 {
        (size.max.saturating_add(1), size.max)
    } else if new.max <= old.min {
        (0, size.max)
    } else {
        (divided(size.max, old.min), 0)
    };
    let (count_min, kept_min) = if old.max == 0 {
        (size.min.saturating_add(1), size.min)
    } else if old.max <= new.min {
        (0, size.min)
    } else {
        (divided(size.min, old.max), 0)
    };
    Range { min: count_min, max: count_max }.times(new).plus(Range { min: kept_min, max: kept_max })
}
