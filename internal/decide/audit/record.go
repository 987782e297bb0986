// Package audit is the append-only log: who asked for what, what was decided
// and by which rule, written before anything happens. The daemon is its only
// appender.
//
// Append returns when the bytes are on the disk (fdatasync returned). The segments are files of
// records. A segment is sealed when it is compressed, and elsewhere when only its leaves' hashes
// are left here. A record's line is a leaf of the Merkle tree over all records, whose signed head
// is the log checkpoint (package checkpoint). The personal data of people are kept beside the line,
// which has only a salted hash of them.
//
// # Files
//
//	000000000000.jsonl      a segment, named after its first record's number
//	000000000000.personal   the personal data of its records, JSON lines
//	000000000000.jsonl.gz   a sealed segment
//	000000000000.leaves     the hashes of its leaves, 32 bytes each
//	tree                    all hashes of the tree, as tlog.StoredHashIndex counts them
//	checkpoints             signed notes, each followed by an empty line
//	keys.pub                the public keys that signed them, oldest first
//	key                     the private key, if it is not kept elsewhere
//	*.torn                  what crashes tore off
//	lock, published.json    the appender's lock; what was published last
//
// # The order of things
//
//  1. Append encodes the record, and commits to what is personal in it.
//  2. The writer takes all that wait, gives them numbers and a time, writes personal
//     data and syncs them, writes the lines and syncs them. Append returns: the
//     journal acknowledges, and nothing below can take a record back.
//  3. The follower reads the new lines, adds their hashes to the tree, syncs it, and
//     signs a checkpoint; at once after a pause, once a second while records come.
//  4. The publisher (package publish) hands checkpoints out.
//
// The tree is made again from the lines where it is lost or behind; where it
// disagrees with them, Open fails and says so, and Verify finds the record.
package audit

import (
	"context"
	"iter"
	"time"
)

// Outcome is what became of an ask.
type Outcome string

// The outcomes.
const (
	Served    Outcome = "served"    // an artifact, recorded before its first byte is sent
	Aborted   Outcome = "aborted"   // served, but the client went away before the last byte; of KindFile, it broke off
	Asked     Outcome = "asked"     // an upstream, recorded before the question leaves; once per question and run, with its repeats
	Shown     Outcome = "shown"     // metadata or an index page, recorded before its first byte is sent; once per digest and run
	Built     Outcome = "built"     // of a source distribution, in a sandbox of its own; Detail has the source and its digest
	Installed Outcome = "installed" // the inventory found it on the sandbox's disk
	Blocked   Outcome = "blocked"   // refused by policy
	Withheld  Outcome = "withheld"  // left out of an index: one record per (run, project, index, policy)
	Pending   Outcome = "pending_approval"
	WouldDeny Outcome = "would_deny" // let through by a policy that only observes, and that would refuse it
	WouldHold Outcome = "would_hold" // the same of what would wait for a person
	Failed    Outcome = "failed"     // refused because it could not be verified; Detail says why
	Started   Outcome = "started"    // a sandbox, a command
	Finished  Outcome = "finished"   // a sandbox, a command: Detail has the exit
	Exceeded  Outcome = "exceeded"   // a quota: the run is cut, not the log
	Alarm     Outcome = "alarm"      // what was served before is known to be malicious now, or is on a disk and was never served

	// Of KindFinding, what went out; what did not is Blocked.
	Found Outcome = "found" // Detail["action"] says how it went out

	// Of KindApproval; a request begins with Pending.
	Approved   Outcome = "approved"
	Denied     Outcome = "denied"
	Expired    Outcome = "expired"
	Superseded Outcome = "superseded"

	Planned Outcome = "planned" // a plan's verdict; nothing was installed
	Frozen  Outcome = "frozen"  // a sandbox, written to disk
	Thawed  Outcome = "thawed"

	// Of KindSandbox, too.
	Paused      Outcome = "paused"   // written to disk because somebody asked for that
	Resumed     Outcome = "resumed"  // goes on after a pause
	Snapshotted Outcome = "snapshot" // a copy was written; Detail has its id and digest
	Restored    Outcome = "restored" // made from a snapshot, or as a fork: Detail has of what
	Adopted     Outcome = "adopted"  // a new daemon took it over
	Extended    Outcome = "extended" // its end was moved
	Used        Outcome = "used"     // a secret, in a request to a host: Detail has where, and nothing of it; or an approval, by the push that it is for
	Narrowed    Outcome = "narrowed" // its client changed what it gives up of the network: Detail has it whole

	// Of KindLog; Detail["event"] tells more.
	Sealed  Outcome = "sealed"  // a segment, compressed
	Erased  Outcome = "erased"  // personal data; Started is the record of the intent
	Rotated Outcome = "rotated" // the key
)

// Outcomes are all that a record can have.
func Outcomes() []Outcome {
	return []Outcome{
		Served, Aborted, Asked, Shown, Built, Installed, Blocked, Withheld, Pending, WouldDeny, WouldHold, Failed, Started, Finished, Exceeded, Alarm, Found,
		Approved, Denied, Expired, Superseded, Planned,
		Frozen, Thawed, Paused, Resumed, Snapshotted, Restored, Adopted, Extended, Narrowed, Used,
		Sealed, Erased, Rotated,
	}
}

// Kind is what a record is about.
type Kind string

// The kinds.
const (
	KindPackage Kind = "package"
	KindCommand Kind = "command"
	KindSandbox Kind = "sandbox"
	KindNetwork Kind = "network" // a name asked for that does not resolve, a stream refused
	KindDaemon  Kind = "daemon"  // start, policy loaded, torn tail repaired
	KindBuild   Kind = "build"   // of a template: begun, a step of it, ended
	KindTool    Kind = "tool"    // a call of a tool of the host: begun, ended, refused
	KindFinding Kind = "finding" // a secret or personal data, in what leaves a sandbox
	KindFile    Kind = "file"    // a file that a client writes, reads, moves or removes in a sandbox, or a directory that it makes: begun, ended; see FileText
	// KindApproval: a change of a request in the approval queue.
	KindApproval Kind = "approval"
	// KindLog: the log's own affairs: a key changed, a segment sealed, data erased.
	KindLog Kind = "log"
)

// Kinds are all that a record can have.
func Kinds() []Kind {
	return []Kind{KindPackage, KindCommand, KindSandbox, KindNetwork, KindDaemon, KindBuild, KindTool, KindFinding, KindFile, KindApproval, KindLog}
}

// Record is one line of the log. Strings are data that publishers, agents and
// people control; they are JSON-escaped on disk and must be escaped again for
// whatever shows them.
type Record struct {
	Seq  uint64    `json:"seq"`       // set by Append: 0, 1, 2, ...
	Time time.Time `json:"timestamp"` // set by Append, UTC
	// Clock is what the host's clock said, set by Append where that is not Time.
	Clock   time.Time `json:"clock,omitzero"`
	Kind    Kind      `json:"kind"`
	Outcome Outcome   `json:"outcome"`

	Run     string `json:"agent_run_id,omitempty"`
	Sandbox string `json:"sandbox,omitempty"`
	Policy  string `json:"policy_digest,omitempty"` // "sha256:<hex>" of the document

	Ecosystem        string          `json:"ecosystem,omitempty"`
	Package          string          `json:"package_name,omitempty"` // canonical
	RequestedVersion string          `json:"requested_version,omitempty"`
	RequestedClaimed bool            `json:"requested_claimed,omitempty"` // it comes from the exec'd command
	InstalledVersion string          `json:"installed_version,omitempty"` // the release's version
	File             string          `json:"file,omitempty"`
	SourceURL        string          `json:"source_url,omitempty"` // without credentials
	SHA256           string          `json:"package_hash_sha256,omitempty"`
	Size             int64           `json:"size,omitempty"`
	ResolvedBy       string          `json:"resolved_by,omitempty"`
	Rule             string          `json:"rule,omitempty"`
	Reason           string          `json:"reason,omitempty"`
	RequestID        string          `json:"request_id,omitempty"`  // what the client was shown
	Approval         string          `json:"approval_id,omitempty"` // of the request in the queue that was asked, or that admitted it
	Withheld         []WithheldRange `json:"withheld,omitempty"`
	Count            int             `json:"count,omitempty"`         // how many like this the record stands for; 0 means 1
	GuestClaimed     bool            `json:"guest_claimed,omitempty"` // the facts come from inside the sandbox

	Command []string          `json:"command,omitempty"`
	User    string            `json:"user,omitempty"`  // who, on the host
	Token   string            `json:"token,omitempty"` // the token whose run it is, or that asks; "": the host's
	Task    string            `json:"task,omitempty"`
	Exit    *int              `json:"exit_code,omitempty"`
	Detail  map[string]string `json:"detail,omitempty"`

	// Erased is set by readers: there were personal data (User, Token, Task, some of
	// Detail) and they were erased, or are not where they should be. Append passes
	// over it.
	Erased bool `json:"personal_erased,omitempty"`
}

// WithheldRange summarises versions left out of an index by one rule.
type WithheldRange struct {
	Rule     string `json:"rule"`
	From     string `json:"from"` // lowest version
	To       string `json:"to"`   // highest version
	Versions int    `json:"versions"`
	Files    int    `json:"files"`
	Reason   string `json:"reason"`
}

// The rules of failures that are nobody's refusal here: the upstream does not have what
// was asked for, does not give it to the gateway, or can't answer.
const (
	RuleMissing  = "upstream.missing"
	RuleDeclined = "upstream.declined"
	RuleFailed   = "upstream.failed"
)

// OfUpstream tells of what an upstream did not give: its answer or its failure, and no
// refusal of ours.
func (r Record) OfUpstream() bool {
	return r.Outcome == Failed && (r.Rule == RuleMissing || r.Rule == RuleDeclined || r.Rule == RuleFailed)
}

// Filter selects records; its zero value selects all.
type Filter struct {
	Run      string
	Sandbox  string
	Kinds    []Kind
	Outcomes []Outcome
	FromSeq  uint64
	User     string // "": whoever
	Token    string // "": whosever
	Alarms   bool   // only what Record.IsAlarm
	// Seqs, if not nil, are the only records that are selected, in ascending
	// order: who has an index asks for what it points to.
	Seqs []uint64
}

// Log is the append-only log. Append is safe for concurrent use and returns
// when the record is durable; an error means that it is not, and what was to
// be recorded must not happen.
type Log interface {
	Append(ctx context.Context, r Record) (Record, error)
	Records(ctx context.Context, f Filter) iter.Seq2[Record, error]
	Close() error
}
