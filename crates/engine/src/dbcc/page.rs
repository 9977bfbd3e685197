use super::*;
pub(super) fn page(_: &mut Interpreter<'_, '_>, node: &Dbcc) -> Result<(), Failure> {
    Err(unsupported(format!("DBCC {}", node.name)).into())
}
pub(super) fn index_pages(_: &mut Interpreter<'_, '_>, node: &Dbcc) -> Result<(), Failure> {
    Err(unsupported(format!("DBCC {}", node.name)).into())
}
