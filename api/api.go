// Package api holds the wire types of the daemon's own interface, /v1: JSON
// over HTTP, on a Unix socket, and for clients with a token over TCP. Errors are
// problem+json (Problem). OpenAPI describes all of it.
package api

import (
	"encoding/json"
	"time"
)

// Mount shows a host path in the sandbox.
type Mount struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
	ReadWrite   bool   `json:"read_write,omitempty"`
}

// Policy is a document and where it came from. Source is for messages and for
// the check that no read-write mount covers it; the daemon never opens it.
type Policy struct {
	// Name is a named policy; there is no document then. Without either it is the
	// token's, and on the Unix socket the built-in one.
	Name     string `json:"name,omitempty"`
	Source   string `json:"source,omitempty"` // absolute path, "" for the built-in default
	Document []byte `json:"document,omitempty"`
	// MadeFrom are the host's files of which the client made the document, where it is not one of them itself. They
	// decide as much as it does, and are asked about as it is; at most 16.
	MadeFrom []DecidingFile `json:"made_from,omitempty"`
}

// DecidingFile is a file of the host by which something is decided, and what the client read in it. The daemon never
// opens it.
type DecidingFile struct {
	Source   string `json:"source"` // absolute path
	Document []byte `json:"document"`
}

// Lockfile is a lockfile's bytes and where it came from. Source is for messages
// and for the check that no read-write mount covers it; the daemon never opens it.
type Lockfile struct {
	Source   string `json:"source"` // absolute path
	Document []byte `json:"document"`
}

// CreateSandbox is the body of POST /v1/sandboxes.
type CreateSandbox struct {
	Run      string `json:"run,omitempty"` // "" makes one
	Task     string `json:"task,omitempty"`
	Template string `json:"template,omitempty"`
	// Isolation is what is to keep the sandbox in: an engine by its name, auto for the
	// strongest that the host has, or hardware for one with a wall of hardware; "": as the
	// policy says. Engine is its older word; both must not be given.
	Isolation string `json:"isolation,omitempty"`
	Engine    string `json:"engine,omitempty"`
	Policy    Policy `json:"policy"`
	// Lockfiles are those that the policy names and those of --lockfile, read by
	// the client on the host; LockMode "" is the policy's, or frozen.
	Lockfiles []Lockfile        `json:"lockfiles,omitempty"`
	LockMode  string            `json:"lock_mode,omitempty"`
	Mounts    []Mount           `json:"mounts,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Workdir   string            `json:"workdir,omitempty"`
	// Plan makes a sandbox whose installs are only weighed: what would wait for a person, or is on
	// no list, is shown to the resolver, nothing is held, and GET /v1/runs/{run}/plan tells the
	// verdicts. Its mounts are read-only. Any caller that may make sandboxes may make this one, and
	// any command can be started in it: files that nobody has admitted can be read and run there,
	// until it ends.
	Plan bool `json:"plan,omitempty"`
	// Linger keeps the sandbox when no client is attached; otherwise it is
	// destroyed some minutes after its last command ended.
	Linger bool `json:"linger,omitempty"`
	// Snapshot, an id or a name, is what the sandbox is made from. Template,
	// engine and mounts are the snapshot's then, and must not be given.
	Snapshot string            `json:"snapshot,omitempty"`
	Lifetime Lifetime          `json:"lifetime,omitzero"`
	Labels   map[string]string `json:"labels,omitempty"` // at most 64
	// Home keeps directories of the home directory from one sandbox to the next; nil: none.
	// For callers on the Unix socket.
	Home *Home `json:"home,omitempty"`
	// Tools are functions of the caller's own that this sandbox may call beside the
	// configuration's, if its policy lists them. They end with the sandbox or the daemon. For
	// callers on the Unix socket.
	Tools []SandboxTool `json:"tools,omitempty"` // at most 64
}

// SandboxTool is a function that a program of the daemon's host offers to one sandbox, by an
// HTTP endpoint on the loopback interface. It is judged, bounded and recorded as those of the
// configuration are.
type SandboxTool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Arguments is the JSON Schema of what it takes; absent: any object.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Endpoint  string          `json:"endpoint"` // http://127.0.0.1:PORT/PATH
	// Secret is what the endpoint knows the daemon by, as Authorization: Bearer; of 32
	// characters or more. Nothing of it is kept.
	Secret    string `json:"secret"`
	Answers   string `json:"answers,omitempty"`    // text or json; "" is text
	TimeoutMS int64  `json:"timeout_ms,omitempty"` // 0: 30 s; at most an hour
}

// Home is what a sandbox keeps of its home directory. One sandbox at a time has it.
type Home struct {
	Name  string   `json:"name"`
	Keeps []string `json:"keeps"` // paths below the home directory, such as .claude
}

// IdempotencyHeader is the header of POST /v1/sandboxes that makes a second
// request with the same key get the first one's sandbox.
const IdempotencyHeader = "Idempotency-Key"

// Sandbox is one sandbox.
type Sandbox struct {
	ID       string `json:"id"`
	Run      string `json:"run"`
	Task     string `json:"task,omitempty"`
	State    string `json:"state"` // creating running freezing frozen paused thawing destroying destroyed failed
	Template string `json:"template"`
	Engine   string `json:"engine"`
	Policy   string `json:"policy_digest"`
	// PolicyName is what the policy calls itself, or else the name of its file; "": it has none.
	PolicyName string    `json:"policy_name,omitempty"`
	Created    time.Time `json:"created"`
	Notes      []string  `json:"notes,omitempty"`   // what the policy asks for that stays closed here, and what lockfiles leave out, a line each
	Missing    []string  `json:"missing,omitempty"` // controls that this host can't enforce
	Ended      string    `json:"ended,omitempty"`   // why it ended, if nobody asked for that
	// Stuck tells that it could not be taken away; not there: nobody failed to.
	Stuck    *Stuck    `json:"stuck,omitempty"`
	Commands []Command `json:"commands,omitempty"`
	Holds    []Hold    `json:"holds,omitempty"` // what it waits for
	// Linger tells that it stays when its command has ended; see CreateSandbox.
	Linger   bool              `json:"linger,omitempty"`
	Lifetime Lifetime          `json:"lifetime,omitzero"` // as it was set last
	Ends     time.Time         `json:"ends,omitzero"`     // by itself, if nothing changes; not there: it does not
	Labels   map[string]string `json:"labels,omitempty"`
	Token    string            `json:"token,omitempty"` // whose it is, by its id; "": the host's
	// TokenName is what that token is called; "": it is the host's, or the token is known no longer.
	TokenName string `json:"token_name,omitempty"`
	Snapshot  string `json:"snapshot,omitempty"` // that it was made from
	Parent    string `json:"parent,omitempty"`   // the sandbox that it is a fork of
	Home      string `json:"home,omitempty"`     // what of its home directory outlives it, by name
}

// Stuck is how it stands with a sandbox that could not be taken away: it is tried
// again, and keeps its share of the quota until it is gone.
type Stuck struct {
	Tries int       `json:"tries"`
	Since time.Time `json:"since"` // the first that failed
	Next  time.Time `json:"next"`  // when it is tried again at the latest
}

// SignalCommand is the body of POST /v1/sandboxes/{id}/commands/{cmd}/signal.
type SignalCommand struct {
	Name string `json:"name"`           // KILL, TERM, ..., with or without SIG
	Tree bool   `json:"tree,omitempty"` // also to what has left the command's process group
}

// StartCommand is the body of POST /v1/sandboxes/{id}/commands.
type StartCommand struct {
	Argv      []string          `json:"argv" most:"100000"`
	Env       map[string]string `json:"env,omitempty"`
	Dir       string            `json:"dir,omitempty"`
	User      string            `json:"user,omitempty"`
	Stdin     bool              `json:"stdin,omitempty"`
	Rows      uint16            `json:"rows,omitempty"` // with Cols: a terminal
	Cols      uint16            `json:"cols,omitempty"`
	TimeoutMS int64             `json:"timeout_ms,omitempty"` // 0: the policy's
	CapBytes  int64             `json:"cap_bytes,omitempty"`  // per output stream; 0: none
	// Code tells that the last word of Argv is code that was handed over as text: rules on
	// code judge it, as they judge what follows python3 -c, whatever the interpreter.
	Code bool `json:"code,omitempty"`
	// Refused tells that rules of the caller's own refuse it. It is not started: it is recorded
	// as blocked, with these words, and the answer is the refusal.
	Refused *RefusedByCaller `json:"refused,omitempty"`
}

// RefusedByCaller is what the caller's own rules say of a command.
type RefusedByCaller struct {
	Rule   string `json:"rule"` // letters, digits and . _ -; others become -
	Reason string `json:"reason"`
}

// Command is the state of one process that was started in a sandbox through the API. Its output is
// read by attaching: GET /v1/sandboxes/{id}/commands/{command}/attach?offset=N with "Upgrade:
// cofferdam-frames", then frames of package channel both ways.
type Command struct {
	ID      string    `json:"id"`
	Argv    []string  `json:"argv"`
	Started time.Time `json:"started"`
	Exit    *Exit     `json:"exit,omitempty"` // nil while it runs
	// Terminal tells that it has one; Output is how many bytes it has written so
	// far, an offset for attaching.
	Terminal bool  `json:"terminal,omitempty"`
	Output   int64 `json:"output,omitempty"`
}

// Exit is how a command ended.
type Exit struct {
	Code        int    `json:"code"`
	Signal      string `json:"signal,omitempty"`
	TimedOut    bool   `json:"timed_out,omitempty"`
	Claimed     bool   `json:"claimed,omitempty"` // the code, the signal and the error are what the sandbox says
	Error       string `json:"error,omitempty"`
	StdoutBytes int64  `json:"stdout_bytes"`
	StderrBytes int64  `json:"stderr_bytes"`
	Truncated   bool   `json:"truncated"`
}

// RunSummary is what became of a run's packages: GET /v1/runs/{run}/summary.
type RunSummary struct {
	Run       string    `json:"run"`
	Task      string    `json:"task,omitempty"`
	Installed []Package `json:"installed"`
	Served    []Package `json:"served"`
	Withheld  []Package `json:"withheld"`
	Refused   []Package `json:"refused"`
	Missing   []Package `json:"missing"`            // what no upstream has, or gives
	Failed    []Package `json:"failed"`             // what an upstream could not give: it was away, broken or slow
	Names     []Name    `json:"names"`              // names that did not resolve
	Findings  []Finding `json:"findings,omitempty"` // secrets and personal data, in what left the sandbox
	Hosts     []Host    `json:"hosts,omitempty"`    // that the policy has, and that were connected to
	Tools     []ToolUse `json:"tools,omitempty"`    // tools of the host that were called, or refused
	// Observes tells that the policy only observed (mode: observe). Would is what it let
	// through and would have refused, or left to a person; WouldNames are names, and hosts
	// with their ports, of which that is so.
	Observes   bool      `json:"observes,omitempty"`
	Would      []Package `json:"would,omitempty"`
	WouldNames []Name    `json:"would_names,omitempty"`
	Alarms     []Package `json:"alarms,omitempty"`   // all of the run, oldest first; also those that are lines of Refused and the like
	Ended      string    `json:"ended,omitempty"`    // why the policy ended the sandbox
	Unlisted   string    `json:"unlisted,omitempty"` // why it is not known what is on the disk
	// CopyOf tells, of a run in a copy of a sandbox, what it is a copy of and which
	// packages came in it.
	CopyOf string `json:"copy_of,omitempty"`
}

// Package is one line of a summary.
type Package struct {
	Ecosystem string `json:"ecosystem"`
	Name      string `json:"name"`
	Version   string `json:"version,omitempty"` // a range "1.0 .. 2.3" for withheld
	File      string `json:"file,omitempty"`
	SHA256    string `json:"sha256,omitempty"`
	Rule      string `json:"rule,omitempty"`
	Reason    string `json:"reason,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Suggest   string `json:"suggest,omitempty"`
	Count     int    `json:"count,omitempty"`
	Alarm     bool   `json:"alarm,omitempty"` // it is an alarm, or there is one about it
}

// Name is a refused name.
type Name struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// Finding is what was found by one rule in one place of what left a sandbox.
type Finding struct {
	What   string `json:"what"`             // the rule's name: github-token
	Where  string `json:"where,omitempty"`  // a command's id, a file's path, or a host with the place in the request
	Action string `json:"action,omitempty"` // report, redact or block; would_redact or would_block by a policy that only observes
	Count  int    `json:"count"`            // different values
}

// Host is a host on the network that a run connected to, or was refused to.
type Host struct {
	Name        string `json:"name"`
	Port        int    `json:"port"`
	Connections int    `json:"connections"`
	BytesOut    int64  `json:"bytes_out"` // of connections that have ended
	BytesIn     int64  `json:"bytes_in"`
	Refused     int    `json:"refused,omitempty"` // connections that were refused, or failed
	Reason      string `json:"reason,omitempty"`  // of the first of these
}

// ToolUse is a tool of the host that a run called, or was refused.
type ToolUse struct {
	Name    string `json:"name"`
	Calls   int    `json:"calls"`             // that were made
	Failed  int    `json:"failed,omitempty"`  // of these
	Refused int    `json:"refused,omitempty"` // calls that were not made
	Reason  string `json:"reason,omitempty"`  // of the first that was refused or failed
}

// Problem is RFC 9457.
type Problem struct {
	Type   string `json:"type,omitempty"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// RetrySeconds is, with status 429 and 503, when the same may succeed, as in
	// the header Retry-After; 0: it is not known.
	RetrySeconds int `json:"retry_seconds,omitempty"`
}

// Version is GET /v1/version.
type Version struct {
	Version string    `json:"version"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	State   string    `json:"state_dir"`
	// Background: another command started it, and it ends when it is idle.
	Background bool `json:"background,omitempty"`
	// URL is where the daemon listens for clients with a token; "": nowhere.
	// CAFile is the certificate of the CA to trust there; "": a public one.
	URL    string `json:"url,omitempty"`
	CAFile string `json:"ca_file,omitempty"`
	// CABundle is a file with that certificate and the CAs of the daemon's system, for programs that trust
	// what one file has and nothing else; "": there is none.
	CABundle string `json:"ca_bundle,omitempty"`
	// Domain is the name, with the port that belongs to it, below which api.DOMAIN and the ports of
	// sandboxes, PORT-ID.DOMAIN, are; "": there are no such names.
	Domain string `json:"domain,omitempty"`
	// Listens is the address at which it listens for clients with a token, host:port as it was configured:
	// an unspecified host is every address of its machine, while URL has one of them; "": nowhere.
	Listens string `json:"listens,omitempty"`
}

// Template is one line of GET /v1/templates.
type Template struct {
	Name    string    `json:"name"`
	Digest  string    `json:"digest"`
	Created time.Time `json:"created"`
	Bytes   int64     `json:"bytes"`
	// Outdated tells that it was built by another version's recipe.
	Outdated bool `json:"outdated,omitempty"`
}

// TemplateEvent is one line of the NDJSON answer of POST /v1/templates/{name}:
// progress until Done or Error.
type TemplateEvent struct {
	Step    string    `json:"step,omitempty"`
	Detail  string    `json:"detail,omitempty"`
	Percent int       `json:"percent,omitempty"`
	Done    *Template `json:"done,omitempty"`
	Error   string    `json:"error,omitempty"`
}

// Suggestion is GET /v1/runs/{run}/suggest: the run's policy and what it would be if it
// let in what the run asked for. With plan=RUN (which may be repeated), a plan that was
// made under such a suggestion, versions are those of the plan, and what that was still
// refused is let in, too.
type Suggestion struct {
	Source    string `json:"source"`
	Document  []byte `json:"document"`
	Suggested []byte `json:"suggested"`
	Diff      string `json:"diff"` // unified
	// Roots are what the run asked for: with what they require they are what the
	// suggestion is about. Template is the run's.
	Roots    []SuggestedRoot `json:"roots"`
	Template string          `json:"template,omitempty"`
	// Left is what the plans were refused and what no entry of an allowlist lets in,
	// such as a release that is too young: a sentence each.
	Left []string `json:"left,omitempty"`
	// Stays is what the run was refused and what is not suggested: a sentence each, which says why.
	Stays []string `json:"stays,omitempty"`
}

// SuggestedRoot is a package that a run asked for.
type SuggestedRoot struct {
	Ecosystem string `json:"ecosystem"`
	Name      string `json:"name"`
	// Version is the one that was served, else the one of the plan or that the client
	// chose; "": it got to none, and the suggestion has no cap.
	Version string `json:"version,omitempty"`
	Asked   string `json:"asked,omitempty"` // the word of a command that asked for it
	Served  bool   `json:"served"`          // a file of it
}
