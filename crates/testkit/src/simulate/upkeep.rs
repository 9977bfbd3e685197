//! Statements that change nothing the ledger knows: checkpoints, backups, shrinking, options, files.

use super::workload::Workload;

/// Such a statement.
pub struct Upkeep {
    /// Its text.
    pub text: String,
    /// Errors it may answer with in any state: the workload does not know what the database's files and options are.
    pub allowed: &'static [i32],
}

/// No full backup yet (4214), the model keeps no log (4208).
const BACKUP_LOG: &[i32] = &[4208, 4214];
/// The file is not empty (5042), or the crash of its making has left none (5009).
const REMOVE_FILE: &[i32] = &[5009, 5042];

impl Workload {
    /// A statement of that kind for a database.
    pub fn upkeep(&mut self, database: &str) -> Upkeep {
        let plain = |text: String| Upkeep { text, allowed: &[] };
        match self.below(20) {
            0..3 => plain(format!("DBCC SHRINKDATABASE ({database})")),
            3..5 => plain(format!("DBCC SHRINKFILE ({database}_log, 1)")),
            5..7 => plain(format!("DBCC SHRINKFILE ({database}, 1)")),
            7..9 => {
                let model = ["FULL", "SIMPLE", "BULK_LOGGED"][self.below(3)];
                plain(format!("ALTER DATABASE {database} SET RECOVERY {model}"))
            }
            9..11 => plain(format!("BACKUP DATABASE {database} TO DISK = 'NUL'")),
            11..15 => self.backup_log(database),
            15..17 => self.add_file(database),
            17..19 => self.remove_file(database),
            _ => {
                let value = if self.random.chance(1, 2) { "ON" } else { "OFF" };
                plain(format!("ALTER DATABASE {database} SET READ_COMMITTED_SNAPSHOT {value}"))
            }
        }
    }

    /// A backup of the log.
    pub fn backup_log(&mut self, database: &str) -> Upkeep {
        Upkeep { text: format!("BACKUP LOG {database} TO DISK = 'NUL'"), allowed: BACKUP_LOG }
    }

    fn add_file(&mut self, database: &str) -> Upkeep {
        let name = format!("f{}", self.fresh());
        let text =
            format!("ALTER DATABASE {database} ADD FILE (NAME = {name}, FILENAME = '/data/{name}.ndf', SIZE = 512KB, FILEGROWTH = 512KB)");
        self.files.push((database.to_owned(), name));
        Upkeep { text, allowed: &[] }
    }

    fn remove_file(&mut self, database: &str) -> Upkeep {
        let Some(at) = self.files.iter().position(|(of, _)| of == database) else { return self.add_file(database) };
        // Kept where it is not known whether it went: asking again answers 5009.
        let name = self.files[at].1.clone();
        if self.random.chance(1, 2) {
            self.files.remove(at);
        }
        Upkeep { text: format!("ALTER DATABASE {database} REMOVE FILE {name}"), allowed: REMOVE_FILE }
    }
}
