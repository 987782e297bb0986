package api

import (
	"encoding/json"
	"time"
)

// AuditQuestion is the body of POST /v1/audit/reports/{name}. The answer is an
// AuditReport.
type AuditQuestion struct {
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"` // not included
	// Run narrows to a run; the report "run" needs it.
	Run string `json:"run,omitempty"`
	// Policy narrows to a policy's digest; one that ends in "*" to those that begin so.
	Policy string `json:"policy,omitempty"`
	// User and Token narrow to whose runs they are: a user of the host, the id of a token.
	User  string `json:"user,omitempty"`
	Token string `json:"token,omitempty"`
	// Lockfiles are the baseline, in place of each run's own.
	Lockfiles []Lockfile `json:"lockfiles,omitempty"`
	// Limit is how many rows a table shows at most; 0: all.
	Limit int `json:"limit,omitempty"`
	// MinRuns is how many other runs a policy needs before one of its runs can
	// be called busy; 0: 10.
	MinRuns int `json:"min_runs,omitempty"`
}

// AuditReport answers one question.
type AuditReport struct {
	Report string `json:"report"`
	// Asked says in a line what was asked, and over which records.
	Asked string `json:"asked"`
	// First and Last are the records that were looked at; without any, Empty.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	Empty bool   `json:"empty,omitempty"`
	// Checkpoint is the newest log checkpoint, in a line; "": there is none.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Verified says what was proved of the log before it was read for this, in a line; "": it
	// was not verified, and whoever can write its files can have chosen the answer.
	Verified string       `json:"verified,omitempty"`
	Tables   []AuditTable `json:"tables"`
	// Found counts what the report looks for, also what the limit leaves out.
	Found int `json:"found"`
	// Unjudged counts what could not be judged.
	Unjudged int    `json:"unjudged,omitempty"`
	Verdict  string `json:"verdict"`
	// Records are all records of a run, oldest first: only of the report "run".
	Records []json.RawMessage `json:"records,omitempty"`
}

// AuditTable has a row for each thing that was found. Texts are as they stand in
// the log: who shows them escapes them.
type AuditTable struct {
	Title   string              `json:"title,omitempty"`
	Columns []string            `json:"columns"`
	Rows    []map[string]string `json:"rows"` // by column
}

// AuditQuery is the body of POST /v1/audit/query; the answer is the selected
// records as JSON lines, oldest first.
type AuditQuery struct {
	// Where has, by a field's name (run, package, outcome, ...), values of which
	// the record has to have one; a value that ends in "*" stands for all that
	// begin so.
	Where map[string][]string `json:"where,omitempty"`
	// Text is in some text of the record.
	Text  string    `json:"text,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"` // not included
	From  uint64    `json:"from,omitempty"` // the first record's number
	// Flags are of claimed, guest, unaccounted, brought, alarm; the record has to have all.
	Flags []string `json:"flags,omitempty"`
	Exit  *int     `json:"exit,omitempty"`
	Limit int      `json:"limit,omitempty"` // 0: all
}
