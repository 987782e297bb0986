package index

import "fmt"

// The numbers that tell our files from others, and this layout from earlier ones.
const (
	applicationID = 0x636f6664 // "cofd"
	schemaVersion = 3
)

// The flags of a record.
const (
	FlagClaimed     = 1 << iota // requested_claimed
	FlagGuest                   // guest_claimed
	FlagUnaccounted             // on a disk, and nothing of it was served
	FlagBrought                 // nothing of it had to be served: see brought
	FlagAlarm                   // audit.Record.IsAlarm
	FlagErased                  // personal data of it were erased: nobody knows whose it was
)

// schema makes the tables. A record is a row of numbers: each text is in texts once, and 0 is the
// empty text, so that a question reads little. The facts that reports judge are kept by sandbox and
// by shape as records come.
//
//   - records.at is in nanoseconds since 1970 and never falls with seq;
//   - records.host is the scheme and host of source; command is the words with
//     spaces between; detail is a line "key=value" for each, then a line for each
//     withheld range;
//   - sandboxes.locks is the digest of the run's lockfiles, user and token are whose it
//     is, first and last are records, served and installed count those of files;
//   - shapes are what records of files have in common: there are far fewer shapes
//     than records, so a report judges shapes and then finds their records. A
//     record that was not served, installed or an alarm has the shape 0. first is
//     the first record of the shape, locks is the sandbox's, flags are the
//     record's but for FlagGuest, FlagAlarm and FlagErased, count is how many records have it.
func schema() []string {
	return []string{
		"CREATE TABLE texts (id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, text TEXT NOT NULL)",
		"CREATE INDEX texts_by_hash ON texts (hash)",
		`CREATE TABLE records (
			seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind INTEGER NOT NULL, outcome INTEGER NOT NULL,
			run INTEGER NOT NULL, sandbox INTEGER NOT NULL, policy INTEGER NOT NULL,
			ecosystem INTEGER NOT NULL, package INTEGER NOT NULL, requested INTEGER NOT NULL, version INTEGER NOT NULL,
			file INTEGER NOT NULL, source INTEGER NOT NULL, host INTEGER NOT NULL, sha256 INTEGER NOT NULL,
			resolved_by INTEGER NOT NULL, rule INTEGER NOT NULL, reason INTEGER NOT NULL, approval INTEGER NOT NULL,
			user INTEGER NOT NULL, token INTEGER NOT NULL, task INTEGER NOT NULL, command INTEGER NOT NULL, detail INTEGER NOT NULL,
			flags INTEGER NOT NULL, shape INTEGER NOT NULL, exit INTEGER, request TEXT)`,
		`CREATE TABLE sandboxes (
			sandbox INTEGER PRIMARY KEY, run INTEGER NOT NULL, policy INTEGER NOT NULL, locks INTEGER NOT NULL, user INTEGER NOT NULL, token INTEGER NOT NULL,
			first INTEGER NOT NULL, last INTEGER NOT NULL, served INTEGER NOT NULL, installed INTEGER NOT NULL)`,
		`CREATE TABLE shapes (
			shape INTEGER PRIMARY KEY, first INTEGER NOT NULL, outcome INTEGER NOT NULL, ecosystem INTEGER NOT NULL, package INTEGER NOT NULL,
			requested INTEGER NOT NULL, version INTEGER NOT NULL, host INTEGER NOT NULL, sha256 INTEGER NOT NULL,
			resolved_by INTEGER NOT NULL, approval INTEGER NOT NULL, locks INTEGER NOT NULL, flags INTEGER NOT NULL, count INTEGER NOT NULL)`,
		"CREATE INDEX shapes_by_release ON shapes (package, version, sha256)",
		"CREATE TABLE state (next INTEGER NOT NULL, last INTEGER, fingerprint BLOB NOT NULL)",
		"INSERT INTO state VALUES (0, NULL, x'')",
		fmt.Sprintf("PRAGMA application_id = %d", applicationID),
		fmt.Sprintf("PRAGMA user_version = %d", schemaVersion),
	}
}

// secondary are made after the first feeding: a whole log is taken faster
// without them.
func secondary() []string {
	return []string{
		"CREATE INDEX IF NOT EXISTS records_by_outcome ON records (outcome, kind, run)",
		"CREATE INDEX IF NOT EXISTS records_by_shape ON records (shape) WHERE shape <> 0",
		"CREATE INDEX IF NOT EXISTS records_by_run ON records (run)",
		"CREATE INDEX IF NOT EXISTS records_by_package ON records (package)",
		"CREATE INDEX IF NOT EXISTS records_by_token ON records (token) WHERE token <> 0",
		"CREATE INDEX IF NOT EXISTS sandboxes_by_run ON sandboxes (run)",
		"CREATE INDEX IF NOT EXISTS records_by_approval ON records (approval) WHERE approval <> 0",
	}
}

// columns of records, in the order of row.
const columns = "seq, at, kind, outcome, run, sandbox, policy, ecosystem, package, requested, version, file, source, host, sha256, " +
	"resolved_by, rule, reason, approval, user, token, task, command, detail, flags, shape, exit, request"

const columnCount = 28
