//! The operators of a query, and the flow of series between them.
//!
//! ```text
//! scan ─▶ fold ─▶ operator ─▶ … ─▶ root ─▶ answer
//! ```
//!
//! Operators are in the order of the plan: the inputs of an operator have lower numbers. The ports
//! of an operator are filled one after the other; series for a later port wait until all earlier
//! ports have ended. Only joins in lockstep fill both ports at once (see `plan::lockstep`).

use super::budget::Usage;
use super::context::{Context, Deferred};
use super::fold::Fold;
use super::series::Series;
use crate::error::EvalError;
use crate::plan::{NodeId, Port};
use crate::syntax::Span;

/// Number of nested operator calls before the next is deferred: long chains use up the stack.
const DEPTH_MAX: usize = 200;

/// A part of the expression that takes series and emits series.
pub trait Operator {
    /// Takes a series. All ports before `port` have ended, unless the operator runs in lockstep.
    fn push(&mut self, port: Port, series: Series, out: &mut Out<'_>) -> Result<(), EvalError>;

    /// Ends a port, which receives no further series.
    fn end(&mut self, port: Port, out: &mut Out<'_>) -> Result<(), EvalError>;

    /// Returns this operator as a fold, if it receives the samples of a scan.
    fn fold(&mut self) -> Option<&mut Fold> {
        None
    }
}

/// An operator and the series that wait for it.
pub struct State {
    operator: Box<dyn Operator>,
    parent: Option<(NodeId, Port)>,
    span: Span,
    /// Whether series of all ports are taken at once during a lockstep scan.
    is_lockstep: bool,
    ended: Vec<bool>,
    open: Port,
    waiting: Vec<(Port, Series)>,
    waiting_held: Usage,
}

impl State {
    /// Wraps an operator with `ports` inputs, whose results go to a port of `parent`.
    pub fn new(
        operator: Box<dyn Operator>,
        ports: usize,
        parent: Option<(NodeId, Port)>,
        span: Span,
        is_lockstep: bool,
    ) -> State {
        State {
            operator,
            parent,
            span,
            is_lockstep,
            ended: vec![false; ports],
            open: 0,
            waiting: Vec::new(),
            waiting_held: Usage::default(),
        }
    }

    fn push(&mut self, port: Port, series: Series, out: &mut Out<'_>) -> Result<(), EvalError> {
        // In lockstep, a series of the second port matches the held series of the first port.
        if port == self.open || (self.is_lockstep && out.context.is_lockstep) {
            return self.operator.push(port, series, out);
        }
        let held = series.held();
        self.waiting_held.bytes += held.bytes;
        self.waiting_held.samples += held.samples;
        out.context.budget.take(held, self.span)?;
        self.waiting.push((port, series));
        Ok(())
    }

    fn end(&mut self, port: Port, out: &mut Out<'_>) -> Result<(), EvalError> {
        self.ended[port] = true;
        // A later port may have ended before this port, so several ports may end now.
        while self.open < self.ended.len() && self.ended[self.open] {
            self.operator.end(self.open, out)?;
            self.open += 1;
            self.release(out)?;
        }
        if self.open == self.ended.len() { out.end() } else { Ok(()) }
    }

    /// Hands over the series that waited for the port that is open now.
    fn release(&mut self, out: &mut Out<'_>) -> Result<(), EvalError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        // `push` checks the ports again: series for ports that are still closed keep waiting.
        let waiting = std::mem::take(&mut self.waiting);
        out.context.budget.give(std::mem::take(&mut self.waiting_held));
        waiting.into_iter().try_for_each(|(port, series)| self.push(port, series, out))
    }
}

pub struct Out<'a> {
    pub context: &'a mut Context,
    above: &'a mut [State],
    base: NodeId,
    parent: Option<(NodeId, Port)>,
    depth: usize,
}

impl Out<'_> {
    /// Passes a series to the next operator, unless the series has no value.
    pub fn emit(&mut self, series: Series) -> Result<(), EvalError> {
        if series.column.is_empty() {
            // A series without values is no element of a vector at any step.
            self.context.recycle(series.column);
            return Ok(());
        }
        self.pass(Some(series))
    }

    fn end(&mut self) -> Result<(), EvalError> {
        self.pass(None)
    }

    /// Passes a series to the next operator, or ends the operator's port.
    fn pass(&mut self, series: Option<Series>) -> Result<(), EvalError> {
        let Some((node, port)) = self.parent else { return Ok(()) };
        // A parent has a higher number than its inputs, so `above` contains the parent.
        let (below, above) = self.above.split_at_mut(node + 1 - self.base);
        let Some(state) = below.last_mut() else { return Ok(()) };
        if self.depth == DEPTH_MAX {
            let held = series.as_ref().map_or(Usage::default(), Series::held);
            // No operator accounts for a deferred series, so its memory is counted here.
            self.context.budget.take(held, state.span)?;
            let series = series.map(|series| (series, held));
            self.context.deferred.push_back(Deferred { place: (node, port), series });
            return Ok(());
        }
        let parent = state.parent;
        let noting = self.context.annotations.set_noting(state.span);
        let depth = self.depth + 1;
        let mut out = Out { context: self.context, above, base: node + 1, parent, depth };
        let done = match series {
            Some(series) => state.push(port, series, &mut out),
            None => state.end(port, &mut out),
        };
        // The operator that called may still add annotations after this call.
        self.context.annotations.set_noting(noting);
        done
    }
}

pub struct Pipeline {
    states: Vec<State>,
}

impl Pipeline {
    pub fn new(states: Vec<State>) -> Pipeline {
        Pipeline { states }
    }

    pub fn fold(&mut self, node: NodeId) -> Option<&mut Fold> {
        self.states[node].operator.fold()
    }

    pub fn emit(
        &mut self,
        node: NodeId,
        series: Series,
        context: &mut Context,
    ) -> Result<(), EvalError> {
        self.with(node, context, |_, _, out| out.emit(series))
    }

    /// Ends the last port of a node, the port that a scan or generator feeds.
    pub fn end(&mut self, node: NodeId, context: &mut Context) -> Result<(), EvalError> {
        self.with(node, context, |state, port, out| state.end(port, out))
    }

    fn with(
        &mut self,
        node: NodeId,
        context: &mut Context,
        act: impl FnOnce(&mut State, Port, &mut Out<'_>) -> Result<(), EvalError>,
    ) -> Result<(), EvalError> {
        self.at(node, context, |state, out| {
            let port = state.ended.len() - 1;
            act(state, port, out)
        })?;
        // Deferred calls run in the order of arrival, so no operator sees a port end too early.
        while let Some(Deferred { place: (node, port), series }) = context.deferred.pop_front() {
            let given = series.map(|(series, held)| {
                context.budget.give(held);
                series
            });
            self.at(node, context, |state, out| match given {
                Some(series) => state.push(port, series, out),
                None => state.end(port, out),
            })?;
        }
        Ok(())
    }

    fn at(
        &mut self,
        node: NodeId,
        context: &mut Context,
        act: impl FnOnce(&mut State, &mut Out<'_>) -> Result<(), EvalError>,
    ) -> Result<(), EvalError> {
        let (below, above) = self.states.split_at_mut(node + 1);
        let Some(state) = below.last_mut() else { return Ok(()) };
        let parent = state.parent;
        context.annotations.set_noting(state.span);
        let mut out = Out { context, above, base: node + 1, parent, depth: 0 };
        act(state, &mut out)
    }
}
