//! A batch as a flat list of steps: IF, WHILE, GOTO and TRY become jumps, so that running needs no recursion.
//!
//! ```text
//! IF c a ELSE b          branch c else L1 · a · jump L2 · L1: b · L2:
//! WHILE c a              L1: branch c else L2 · a · jump L1 · L2:          BREAK = jump L2, CONTINUE = jump L1
//! TRY a CATCH b          a (in scope try → L1) · jump L2 · L1: b (in scope catch) · leave catch · L2:
//! ```
//!
//! 1. Each step knows the TRY and CATCH blocks around it (`Step::scope`): an error finds its handler without a stack that
//!    GOTO could leave wrong.
//! 2. Every jump's target is a step of the program (`Program::new` resolves all labels or fails with 133).

use crate::messages::message;
use std::collections::BTreeMap;
use thawdb_tsql::ast::{Expr, Ident, Stmt, StmtKind};
use thawdb_types::SqlError;

/// What a step does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Op<'t> {
    /// Runs a statement that is no control of flow.
    Statement(&'t Stmt),
    /// Goes on if the condition is true, else at `otherwise`.
    Branch { condition: &'t Expr, otherwise: usize },
    /// Goes on elsewhere.
    Jump(usize),
    /// Ends a CATCH block: its error is no longer ERROR_NUMBER().
    LeaveCatch(usize),
    /// Ends the program.
    Return(Option<&'t Expr>),
}

/// A step, its line, and the innermost block around it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'t> {
    pub(crate) op: Op<'t>,
    pub(crate) line: u32,
    pub(crate) scope: Option<usize>,
}

/// A TRY or CATCH block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    /// The block around it.
    pub(crate) parent: Option<usize>,
    pub(crate) kind: BlockKind,
}

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// Errors within go to the step at `handler`, in CATCH block `catch`.
    Try {
        handler: usize,
        catch: usize,
    },
    Catch,
}

/// A batch ready to run.
#[derive(Debug, Default)]
pub(crate) struct Program<'t> {
    pub(crate) steps: Vec<Step<'t>>,
    pub(crate) blocks: Vec<Block>,
}

struct Loop {
    start: usize,
    breaks: Vec<usize>,
}

#[derive(Default)]
struct Builder<'t> {
    program: Program<'t>,
    scope: Option<usize>,
    loops: Vec<Loop>,
    labels: BTreeMap<String, usize>,
    gotos: Vec<(usize, &'t Ident)>,
}

/// Target of a jump that is not known yet.
const UNKNOWN: usize = usize::MAX;

impl<'t> Program<'t> {
    /// Flattens a batch. 132, 133, 135, 136 for labels and loops that do not fit.
    pub(crate) fn new(statements: &'t [Stmt]) -> Result<Self, SqlError> {
        let mut builder = Builder::default();
        builder.all(statements)?;
        for (step, label) in std::mem::take(&mut builder.gotos) {
            let target = builder.labels.get(&label.text.to_lowercase()).copied();
            let target = target.ok_or_else(|| message(133, &[&label.text]).at_line(label.span.line))?;
            builder.program.steps[step].op = Op::Jump(target);
        }
        Ok(builder.program)
    }

    /// The handler of an error at `step`: the first step of the CATCH and its block.
    pub(crate) fn handler(&self, step: usize) -> Option<(usize, usize)> {
        let mut scope = self.steps[step].scope;
        while let Some(block) = scope {
            if let BlockKind::Try { handler, catch } = self.blocks[block].kind {
                return Some((handler, catch));
            }
            scope = self.blocks[block].parent;
        }
        None
    }

    /// The CATCH blocks around a step, innermost first.
    pub(crate) fn catches(&self, step: usize) -> impl Iterator<Item = usize> + '_ {
        let first = self.steps.get(step).and_then(|s| s.scope);
        std::iter::successors(first, |block| self.blocks[*block].parent).filter(|block| self.blocks[*block].kind == BlockKind::Catch)
    }
}

impl<'t> Builder<'t> {
    fn push(&mut self, op: Op<'t>, line: u32) -> usize {
        self.program.steps.push(Step { op, line, scope: self.scope });
        self.program.steps.len() - 1
    }

    fn here(&self) -> usize {
        self.program.steps.len()
    }

    fn patch(&mut self, step: usize, target: usize) {
        match &mut self.program.steps[step].op {
            Op::Jump(to) | Op::Branch { otherwise: to, .. } => *to = target,
            other => unreachable!("only jumps are patched, not {other:?}"),
        }
    }

    fn all(&mut self, statements: &'t [Stmt]) -> Result<(), SqlError> {
        statements.iter().try_for_each(|statement| self.one(statement))
    }

    fn one(&mut self, statement: &'t Stmt) -> Result<(), SqlError> {
        let line = statement.span.line;
        match &statement.kind {
            StmtKind::Block(statements) => self.all(statements),
            StmtKind::If(node) => {
                let branch = self.push(Op::Branch { condition: &node.condition, otherwise: UNKNOWN }, line);
                self.one(&node.then)?;
                let Some(otherwise) = &node.otherwise else {
                    let end = self.here();
                    self.patch(branch, end);
                    return Ok(());
                };
                let skip = self.push(Op::Jump(UNKNOWN), line);
                let start = self.here();
                self.patch(branch, start);
                self.one(otherwise)?;
                let end = self.here();
                self.patch(skip, end);
                Ok(())
            }
            StmtKind::While(node) => self.repeat(&node.condition, &node.body, line),
            StmtKind::Break | StmtKind::Continue => self.leave_loop(&statement.kind, line),
            StmtKind::TryCatch(node) => self.guard(&node.body, &node.handler, line),
            StmtKind::Goto(label) => {
                let step = self.push(Op::Jump(UNKNOWN), line);
                self.gotos.push((step, label));
                Ok(())
            }
            StmtKind::Label(label) => {
                let here = self.here();
                match self.labels.insert(label.text.to_lowercase(), here) {
                    Some(_) => Err(message(132, &[&label.text]).at_line(line)),
                    None => Ok(()),
                }
            }
            StmtKind::Return(value) => {
                self.push(Op::Return(value.as_ref()), line);
                Ok(())
            }
            _ => {
                self.push(Op::Statement(statement), line);
                Ok(())
            }
        }
    }

    fn repeat(&mut self, condition: &'t Expr, body: &'t Stmt, line: u32) -> Result<(), SqlError> {
        let start = self.here();
        let branch = self.push(Op::Branch { condition, otherwise: UNKNOWN }, line);
        self.loops.push(Loop { start, breaks: Vec::new() });
        self.one(body)?;
        self.push(Op::Jump(start), line);
        let end = self.here();
        self.patch(branch, end);
        let done = self.loops.pop().expect("pushed above");
        done.breaks.into_iter().for_each(|step| self.patch(step, end));
        Ok(())
    }

    fn leave_loop(&mut self, kind: &StmtKind, line: u32) -> Result<(), SqlError> {
        let (number, is_break) = if matches!(kind, StmtKind::Break) { (135, true) } else { (136, false) };
        let Some(start) = self.loops.last().map(|l| l.start) else { return Err(message(number, &[]).at_line(line)) };
        let step = self.push(Op::Jump(start), line);
        if is_break {
            self.loops.last_mut().expect("seen above").breaks.push(step);
        }
        Ok(())
    }

    fn guard(&mut self, body: &'t [Stmt], handler: &'t [Stmt], line: u32) -> Result<(), SqlError> {
        let outer = self.scope;
        let (try_block, catch) = (self.program.blocks.len(), self.program.blocks.len() + 1);
        self.program.blocks.push(Block { parent: outer, kind: BlockKind::Try { handler: UNKNOWN, catch } });
        self.program.blocks.push(Block { parent: outer, kind: BlockKind::Catch });
        self.scope = Some(try_block);
        self.all(body)?;
        self.scope = outer;
        let skip = self.push(Op::Jump(UNKNOWN), line);
        self.program.blocks[try_block].kind = BlockKind::Try { handler: self.here(), catch };
        self.scope = Some(catch);
        self.all(handler)?;
        self.push(Op::LeaveCatch(catch), line);
        self.scope = outer;
        let end = self.here();
        self.patch(skip, end);
        Ok(())
    }
}
