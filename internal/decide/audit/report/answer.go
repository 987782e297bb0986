package report

import "encoding/json"

// Report answers one question.
type Report struct {
	Report string // its name
	// Asked says in a line what was asked, and over which records.
	Asked string
	// First and Last are the records that were looked at; without any, Empty.
	First, Last uint64
	Empty       bool
	Checkpoint  string // the newest checkpoint of the log, in a line; "": there is none
	Verified    string // what was proved of the log before it was read; "": it was not verified
	Tables      []Table
	Found       int // what the report looks for, also what the limit leaves out
	Unjudged    int // what could not be judged
	Verdict     string
	// Records are all records of a run, oldest first: only of the report "run".
	Records []json.RawMessage
}

// Table has a row for each thing that was found. Texts are as they stand in the log: who
// shows them escapes them.
type Table struct {
	Title   string
	Columns []string
	Rows    []map[string]string // by column
}
