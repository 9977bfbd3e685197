//! Which part of the engine runs which statement.

use crate::batch::failure::Failure;
use crate::batch::interpreter::{Interpreter, kind_of};
use crate::batch::{execute, transactions};
use crate::ddl;
use crate::messages::{unsupported, unsupported_option};
use crate::security;
use thawdb_tsql::ast::{Stmt, StmtKind, TransactionName};
use thawdb_types::Scalar;

impl Interpreter<'_, '_> {
    /// Runs one statement that is no control of flow.
    pub(crate) fn dispatch(&mut self, statement: &Stmt) -> Result<(), Failure> {
        self.begin_implicitly(&statement.kind)?;
        match &statement.kind {
            StmtKind::Select(_) | StmtKind::Insert(_) | StmtKind::Update(_) | StmtKind::Delete(_) | StmtKind::Merge(_) => {
                if let StmtKind::Insert(insert) = &statement.kind
                    && execute::is_insert_execute(insert)
                {
                    return self.insert_execute(statement, insert);
                }
                self.data_statement(statement)
            }
            StmtKind::Declare(declarations) => self.declare(declarations),
            StmtKind::SetVariable(node) => self.set_variable(node),
            StmtKind::DeclareTable(node) => ddl::temporary::declare_table(self, node),
            StmtKind::SetOption(option) => self.quietly(|this| this.set_option(option)),
            StmtKind::Execute(node) | StmtKind::OdbcCall(node) => self.execute(node),
            StmtKind::ExecuteString(node) => self.execute_string(node),
            StmtKind::RaiseError(node) => self.quietly_kept(|this| this.raise_error(node)),
            StmtKind::Print(text) => self.quietly(|this| this.print(text)),
            StmtKind::Throw(node) => self.throw(node.as_deref()),
            StmtKind::WaitFor(node) => self.quietly(|this| this.wait_for(node)),
            StmtKind::Use(name) => self.quietly(|this| this.use_database(name)),
            StmtKind::BeginTransaction(_)
            | StmtKind::CommitTransaction(_)
            | StmtKind::RollbackTransaction(_)
            | StmtKind::SaveTransaction(_) => self.transaction_statement(statement),
            StmtKind::DeclareCursor(_)
            | StmtKind::SetCursor(_)
            | StmtKind::OpenCursor(_)
            | StmtKind::CloseCursor(_)
            | StmtKind::DeallocateCursor(_)
            | StmtKind::Fetch(_) => self.cursor_statement(&statement.kind),
            _ => self.definition_statement(statement),
        }
    }

    /// Runs a statement after which `@@ROWCOUNT` and `@@ERROR` are 0.
    fn quietly(&mut self, work: impl FnOnce(&mut Self) -> Result<(), Failure>) -> Result<(), Failure> {
        work(self)?;
        self.session.row_count = 0;
        self.session.last_error = 0;
        Ok(())
    }

    /// The same, where the statement sets `@@ERROR` itself.
    fn quietly_kept(&mut self, work: impl FnOnce(&mut Self) -> Result<(), Failure>) -> Result<(), Failure> {
        work(self)?;
        self.session.row_count = 0;
        Ok(())
    }

    /// SET IMPLICIT_TRANSACTIONS ON: these statements begin a transaction when none is open.
    fn begin_implicitly(&mut self, kind: &StmtKind) -> Result<(), Failure> {
        if !self.session.options.implicit_transactions || self.session.transactions.count > 0 {
            return Ok(());
        }
        let begins = match kind {
            StmtKind::Select(query) => execute::reads_tables(query),
            StmtKind::Insert(_)
            | StmtKind::Update(_)
            | StmtKind::Delete(_)
            | StmtKind::Merge(_)
            | StmtKind::TruncateTable(_)
            | StmtKind::CreateTable(_)
            | StmtKind::CreateIndex(_)
            | StmtKind::AlterTable(_)
            | StmtKind::Drop(_)
            | StmtKind::DropIndex(_)
            | StmtKind::Permission(_) => true,
            _ => false,
        };
        if begins { transactions::begin(self.session, self.out, None).map_err(Failure::run) } else { Ok(()) }
    }

    fn transaction_name(&mut self, name: Option<&TransactionName>) -> Result<Option<String>, Failure> {
        Ok(match name {
            None => None,
            Some(TransactionName::Name(name)) => Some(name.text.clone()),
            Some(TransactionName::Variable(variable)) => {
                let frame = self.session.frame();
                let position = frame.position(&variable.name);
                let position = position.ok_or_else(|| Failure::compile(crate::messages::message(137, &[&variable.name])))?;
                match &frame.variables[position].value {
                    Scalar::Text(text) => Some(text.clone()),
                    Scalar::Null => None,
                    _ => return Err(crate::messages::message(3914, &[&frame.variables[position].sql_type.base_name()]).into()),
                }
            }
        })
    }

    fn transaction_statement(&mut self, statement: &Stmt) -> Result<(), Failure> {
        match &statement.kind {
            StmtKind::BeginTransaction(node) if node.distributed => return Err(unsupported("BEGIN DISTRIBUTED TRANSACTION").into()),
            StmtKind::BeginTransaction(node) => {
                let name = self.transaction_name(node.name.as_ref())?;
                transactions::begin(self.session, self.out, name.as_deref())?;
            }
            StmtKind::CommitTransaction(node) => {
                self.session.transactions.delayed = node.delayed_durability == Some(true);
                transactions::commit(self.session, self.out)?;
            }
            StmtKind::RollbackTransaction(node) => {
                let name = self.transaction_name(node.name.as_ref())?;
                transactions::rollback(self.session, self.out, name.as_deref())?;
            }
            StmtKind::SaveTransaction(name) => {
                let name = self.transaction_name(Some(name))?;
                transactions::save(self.session, name.as_deref().unwrap_or(""))?;
            }
            other => unreachable!("{other:?} is no transaction statement"),
        }
        self.session.row_count = 0;
        self.session.last_error = 0;
        self.out.done(kind_of(&statement.kind), None, false);
        Ok(())
    }

    /// Definitions and maintenance.
    fn definition_statement(&mut self, statement: &Stmt) -> Result<(), Failure> {
        self.session.may_execute(&statement.kind)?;
        match &statement.kind {
            StmtKind::CreateTable(node) => ddl::table::create_table(self, node)?,
            StmtKind::AlterTable(node) => ddl::alter_table::alter_table(self, node, statement.span)?,
            StmtKind::TruncateTable(node) => ddl::truncate::truncate_table(self, node)?,
            StmtKind::Drop(node) => ddl::drop::drop_objects(self, node)?,
            StmtKind::CreateProcedure(node) => ddl::procedure::create_procedure(self, statement, node)?,
            StmtKind::CreateSequence(node) => ddl::sequence::create_sequence(self, node)?,
            StmtKind::AlterSequence(node) => ddl::sequence::alter_sequence(self, node)?,
            StmtKind::CreateView(node) => ddl::view::create_view(self, statement, node)?,
            StmtKind::CreateFunction(node) => ddl::function::create_function(self, statement, node)?,
            StmtKind::CreateType(node) => ddl::user_type::create_type(self, statement, node)?,
            StmtKind::CreateSynonym(node) => ddl::synonym::create_synonym(self, node)?,
            StmtKind::CreateTrigger(node) => ddl::trigger::create_trigger(self, statement, node)?,
            StmtKind::EnableTrigger(node) => ddl::trigger::enable_trigger(self, node)?,
            StmtKind::CreateIndex(node) => ddl::index::create_index(self, node, statement.span)?,
            StmtKind::AlterIndex(node) => ddl::alter_index::alter_index(self, node, statement.span)?,
            StmtKind::DropIndex(node) => ddl::index::drop_index(self, node)?,
            StmtKind::CreateSchema(node) => ddl::schema::create_schema(self, node)?,
            StmtKind::CreateDatabase(node) => ddl::database::create_database(self, node)?,
            StmtKind::AlterDatabase(node) => ddl::alter_database::alter_database(self, node)?,
            StmtKind::AlterDatabaseScoped(node) => ddl::scoped::alter(self, node)?,
            StmtKind::AlterSchema(_)
            | StmtKind::CreateLogin(_)
            | StmtKind::AlterLogin(_)
            | StmtKind::CreateUser(_)
            | StmtKind::AlterUser(_)
            | StmtKind::CreateRole(_)
            | StmtKind::AlterRole(_)
            | StmtKind::AlterAuthorization(_)
            | StmtKind::Permission(_)
            | StmtKind::ExecuteAs(_)
            | StmtKind::Revert(_) => self.security_statement(&statement.kind)?,
            StmtKind::BulkInsert(node) => ddl::bulk_insert::bulk_insert(self, node)?,
            StmtKind::InsertBulk(node) => {
                self.session.bulk = Some(crate::session::bulk::announce(self.session, node)?);
            }
            StmtKind::Backup(node) => crate::backup::backup(self, node)?,
            StmtKind::Dbcc(node) => return crate::dbcc::run(self, node),
            StmtKind::Checkpoint(_) => self.checkpoint()?,
            StmtKind::Kill(node) => self.kill(node)?,
            StmtKind::Reconfigure { .. } => self.session.engine.reconfigure(),
            StmtKind::CreateStatistics(node) => ddl::statistics::create_statistics(self, node)?,
            StmtKind::UpdateStatistics(node) => ddl::statistics::update_statistics(self, node)?,
            StmtKind::DropStatistics(names) => ddl::statistics::drop_statistics(self, names)?,
            other => return Err(unsupported(unbuilt_name(other)).into()),
        }
        self.send_infos();
        self.session.row_count = 0;
        self.session.last_error = 0;
        self.out.done(kind_of(&statement.kind), None, false);
        Ok(())
    }

    /// Logins, users, roles, permissions, owners, contexts.
    fn security_statement(&mut self, kind: &StmtKind) -> Result<(), Failure> {
        match kind {
            StmtKind::CreateLogin(node) => security::logins::create_login(self, node),
            StmtKind::AlterLogin(node) => security::logins::alter_login(self, node),
            StmtKind::CreateUser(node) => security::users::create_user(self, node),
            StmtKind::AlterUser(node) => security::users::alter_user(self, node),
            StmtKind::CreateRole(node) => security::roles::create_role(self, node),
            StmtKind::AlterRole(node) => security::roles::alter_role(self, node),
            StmtKind::AlterAuthorization(node) => security::ownership::alter_authorization(self, node),
            StmtKind::AlterSchema(node) => security::ownership::alter_schema(self, node),
            StmtKind::Permission(node) => security::grant::permission(self, node),
            StmtKind::ExecuteAs(node) => security::impersonation::execute_as(self, node),
            StmtKind::Revert(cookie) => security::impersonation::revert(self, cookie.as_ref()),
            other => unreachable!("{other:?} is no statement of security"),
        }
    }

    fn checkpoint(&mut self) -> Result<(), Failure> {
        let open = self.session.database.clone();
        match open.storage.checkpoint() {
            Err(thawdb_storage::StorageError::LogFull { .. }) => {
                self.out.message(&crate::messages::message(3619, &[&open.name()]));
                Ok(())
            }
            other => other.map_err(|error| self.session.storage_failure(open.id, error).into()),
        }
    }

    fn kill(&mut self, node: &thawdb_tsql::ast::Kill) -> Result<(), Failure> {
        if !node.what.is_empty() || node.status_only || node.outcome.is_some() {
            return Err(unsupported_option("KILL ... WITH").into());
        }
        let id = self.int_value(&node.session)?.unwrap_or(0);
        let id = i16::try_from(id).ok().filter(|id| *id > 0).ok_or_else(|| crate::messages::message(6101, &[&id]))?;
        if id == self.session.ticket.id {
            return Err(crate::messages::message(6104, &[]).into());
        }
        if self.session.engine.kill(id) { Ok(()) } else { Err(crate::messages::message(6106, &[&id]).into()) }
    }
}

/// How a statement that is not built is called in its refusal.
fn unbuilt_name(kind: &StmtKind) -> String {
    match kind {
        StmtKind::Unbuilt(unbuilt) => unbuilt.name.clone(),
        StmtKind::Restore(_) => "RESTORE".into(),
        StmtKind::SetUser(_) => "SETUSER".into(),
        StmtKind::Shutdown { .. } => "SHUTDOWN".into(),
        StmtKind::CreateEventSession(_) | StmtKind::AlterEventSession(_) | StmtKind::DropEventSession(_) => "EVENT SESSION".into(),
        StmtKind::CreatePartitionFunction(_) | StmtKind::CreatePartitionScheme(_) => "CREATE PARTITION".into(),
        _ => "this statement".into(),
    }
}
