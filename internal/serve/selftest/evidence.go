package selftest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// Release is one of the self-test's own packages.
type Release struct {
	Name   string
	File   string
	URL    string // at the registry, as the log is to have it
	SHA256 string // hex
	Bytes  []byte
	Sent   int // how often the registry has sent the file
}

// Evidence is what happened, as the self-test saw it itself, and what the log says about it.
type Evidence struct {
	Releases map[string]*Release // by role: allowed, refused, held

	// Seen by the self-test itself.
	Began, Ended time.Time
	Run, Sandbox string
	User         string
	Task         string
	Policy       string // digest of the document
	Commands     []Command
	Request      string // in the approval queue
	Index        string // URL of the registry's index

	// Of the log.
	Records    []audit.Record
	RecordsErr error
	Export     []byte
	ExportErr  error
	Verdict    audit.Verdict
	VerifyErr  error
	Proofs     int
	ProofErr   error
}

// Command is what was run in the sandbox, and how it ended.
type Command struct {
	Argv   []string
	Exit   int
	Output string // of both streams
}

// The roles of the packages.
const (
	allowed = "allowed"
	refused = "refused"
	held    = "held"
	version = "1.0"
)

// document is the drill's policy.
const document = `name: selftest
version: "1"
packages: { default: hold, on_hold: fail, unaccounted: alarm }
allowed_packages: { python: [ { name: selftest-allowed, version: "==1.0" } ] }
blocked_packages: { python: [ { name: selftest-refused } ] }
`

// task is stated for the drill's run.
const task = "cofferdam audit selftest"

func pipCommand(role string) []string {
	return []string{"pip", "install", "--no-cache-dir", "--disable-pip-version-check", "--no-deps", "selftest-" + role + "==" + version}
}

// imports shows that what was installed is there.
func imports() []string {
	return []string{"python3", "-c", "import selftest_allowed, selftest_held; print(selftest_allowed.marker, selftest_held.marker)"}
}

// drillPlan are the drill's commands, in order, and whether they are to succeed. After
// the third the held package is approved.
func drillPlan() []struct {
	argv     []string
	succeeds bool
} {
	type step = struct {
		argv     []string
		succeeds bool
	}
	return []step{{pipCommand(allowed), true}, {pipCommand(refused), false}, {pipCommand(held), false}, {pipCommand(held), true}, {imports(), true}}
}

// approveAfter is the number of the command after which the held package is
// approved, from 0.
const approveAfter = 2

// checkAbout checks that a proof is of this very record.
func checkAbout(p audit.Proof, r audit.Record) error {
	var proved audit.Record
	if err := json.Unmarshal([]byte(p.Record), &proved); err != nil {
		return fmt.Errorf("the proved line is no record: %w", err)
	}
	if p.Index != r.Seq || proved.Seq != r.Seq || proved.RequestID != r.RequestID || !proved.Time.Equal(r.Time) || proved.Outcome != r.Outcome || proved.SHA256 != r.SHA256 {
		return fmt.Errorf("the proof is of another record than the log's readers see")
	}
	return nil
}
