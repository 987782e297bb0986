// Package channel is the one connection between the host and a guest: a yamux
// session over a socketpair that is the guest agent's stdin and stdout, and on
// each of its streams the frames of this file.
//
// The first frame of a yamux stream is FrameOpen, whose payload is a JSON message (Open from the
// guest, Call from the host); what follows depends on the kind. The host's side never trusts a
// frame: each has a size limit, the first one a deadline, and a violation closes the stream (or, in
// the multiplexer's own framing, the session).
//
// Wire form of a frame: one byte type, four bytes big-endian payload length,
// payload.
package channel

import "fmt"

// FrameType says what a payload is.
type FrameType byte

// The frames of a stream.
const (
	FrameOpen    FrameType = 1  // JSON: Open (guest to host) or Call (host to guest)
	FrameReply   FrameType = 2  // JSON: Reply; answers FrameOpen
	FrameStdin   FrameType = 3  // bytes; empty payload: end of input
	FrameStdout  FrameType = 4  // bytes (all output under a PTY)
	FrameStderr  FrameType = 5  // bytes
	FrameExit    FrameType = 6  // JSON: Exit; the last frame of an exec stream
	FrameResize  FrameType = 7  // JSON: WindowSize
	FrameSignal  FrameType = 8  // JSON: Signal
	FrameGap     FrameType = 9  // JSON: Gap; only between keeper and daemon or client: output that was not kept
	FrameStarted FrameType = 10 // JSON: Started
	FrameEvent   FrameType = 11 // JSON: FileEvents of a watch, or FileEntries of a list
)

// Limits. A payload is at most MaxPayload bytes, a JSON one at most MaxJSON.
const (
	HeaderSize = 5
	MaxPayload = 64 << 10
	MaxJSON    = 256 << 10 // only FrameOpen and FrameReply may be this large
)

// OpenKind is what the guest wants from a stream that it opens.
type OpenKind string

// The kinds of guest-opened streams. There is no verb to approve or configure.
const (
	OpenDNS OpenKind = "dns" // one question; the reply is a DNSAnswer
	// OpenTCP: after an OK reply the stream is raw bytes, both ways. Its Text is
	// what OpenHangUp names the stream by.
	OpenTCP OpenKind = "tcp"
	// OpenHangUp tells that the client of an OpenTCP has gone: it takes no more.
	// The multiplexer has no verb for that.
	OpenHangUp OpenKind = "hangup"
	OpenWhy    OpenKind = "why" // the reply's Text is what `cofferdam why` prints
	// OpenRequest asks for packages before anything fails; the reply's Text is
	// what `cofferdam request` prints. It files questions, it answers none.
	OpenRequest OpenKind = "request"
)

// ToolsHost is the name, on port 80, by which programs in a sandbox call tools of the
// host. It is under a top-level domain that nobody can register a name in.
const ToolsHost = "tools.cofferdam.internal"

// Open is the first frame of a guest-opened stream.
type Open struct {
	Kind   OpenKind `json:"kind"`
	Name   string   `json:"name,omitempty"` // a DNS name, lower case, no trailing dot
	Port   int      `json:"port,omitempty"`
	JSON   bool     `json:"json,omitempty"`   // why, request: machine-readable
	ID     string   `json:"id,omitempty"`     // why: only what was refused under it; an older host tells all
	Stream string   `json:"stream,omitempty"` // hangup: the Text of the reply to its OpenTCP
	// Request is what OpenRequest asks for.
	Request *Request `json:"request,omitempty"`
}

// Limits of a Request.
const (
	MaxRequestItems  = 50
	MaxRequestReason = 2000 // bytes
)

// Request is an agent's request for packages. All of it is the guest's claim.
type Request struct {
	Items   []RequestItem `json:"items"`
	Because string        `json:"because,omitempty"`
}

// RequestItem is one package, in one version or, with "", in the newest that
// may be had.
type RequestItem struct {
	Ecosystem string `json:"ecosystem"` // pkgref.Ecosystem
	Name      string `json:"name"`
	Version   string `json:"version,omitempty"`
}

// Reply answers an Open or a Call.
type Reply struct {
	OK    bool       `json:"ok"`
	Error string     `json:"error,omitempty"` // one sentence
	Code  ErrorCode  `json:"code,omitempty"`  // of a file's error
	DNS   *DNSAnswer `json:"dns,omitempty"`
	Text  string     `json:"text,omitempty"`
	Body  []byte     `json:"body,omitempty"` // JSON of the verb's own type (Inventory for CallInventory)
}

// DNSAnswer tells the guest agent whether a name exists. If it does, the agent
// gives it an address of its own in 127.64.0.0/10 and listens on Ports.
type DNSAnswer struct {
	Exists bool  `json:"exists"`
	Ports  []int `json:"ports,omitempty"`
}

// CallKind is what the host wants from the guest agent.
type CallKind string

// The kinds of host-opened streams.
const (
	CallPing      CallKind = "ping"
	CallConfigure CallKind = "configure" // once after start, and again after a restore
	CallExec      CallKind = "exec"      // reply, then exec frames
	CallInventory CallKind = "inventory" // installed packages; guest-claimed
	CallContents  CallKind = "contents"  // what directories consist of; guest-claimed
	CallTrust     CallKind = "trust"     // other certificates than those of Configure, from now on
	CallHold      CallKind = "hold"      // the clocks of commands stop, or go on
	CallResume    CallKind = "resume"    // after a thaw
	CallFile      CallKind = "file"      // one operation on files; see File
	CallDial      CallKind = "dial"      // after an OK reply the stream is raw bytes, to and from 127.0.0.1:Port
	CallHangUp    CallKind = "hang_up"   // nobody reads any more what comes by a dial, the one whose reply's Text is Call.Dial
	CallUsage     CallKind = "usage"     // the reply's Body is a DiskUsage
	CallSync      CallKind = "sync"      // the reply comes when what was written to files is on the disk
	CallAdopt     CallKind = "adopt"     // a command that runs gets this stream as its own, after a reset; reply, then exec frames
	CallControl   CallKind = "control"   // a command gets a signal, or its terminal a size, past all input that waits; see Control
)

// UnknownCall is an agent's sentence about a call that it does not know. By it a host tells
// the agents that are older than the call: those of snapshots, which come up as they were.
func UnknownCall(kind CallKind) string {
	return fmt.Sprintf("the guest agent does not know the call %q", kind)
}

// Call is the first frame of a host-opened stream.
type Call struct {
	Kind      CallKind      `json:"kind"`
	Configure *Configure    `json:"configure,omitempty"`
	Exec      *Exec         `json:"exec,omitempty"`
	Inventory *InventoryAsk `json:"inventory,omitempty"` // nil: all of it
	Contents  *ContentsAsk  `json:"contents,omitempty"`
	Trust     *Trust        `json:"trust,omitempty"`
	Hold      *Hold         `json:"hold,omitempty"`
	Resume    *Resume       `json:"resume,omitempty"`
	File      *File         `json:"file,omitempty"`
	Port      int           `json:"port,omitempty"`  // of CallDial
	Dial      string        `json:"dial,omitempty"`  // of CallHangUp
	Adopt     string        `json:"adopt,omitempty"` // the command's id
	Control   *Control      `json:"control,omitempty"`
}

// Control tells a command something that does not wait behind its input, which the
// command need not read: one of Signal and Resize. The reply comes when it is done. Of a
// signal KILL that is when the command has ended; with Signal.Tree, all that came of it.
// CodeNotFound: no command with the id runs.
type Control struct {
	Command string      `json:"command"` // its id
	Signal  *Signal     `json:"signal,omitempty"`
	Resize  *WindowSize `json:"resize,omitempty"`
}

// Trust has the sandbox trust these, beside its template's, in place of those before.
type Trust struct {
	CAPEM []byte `json:"ca_pem"`
}

// Hold stops the clocks of commands' timeouts while a person decides, or lets
// them go on. Told twice it does no more than once.
type Hold struct {
	Stopped bool `json:"stopped"`
}

// Resume tells a guest that it was frozen, and gives it what its copy on disk
// must not have kept.
type Resume struct {
	Now  int64  `json:"now"`  // unix nanoseconds
	Seed []byte `json:"seed"` // entropy
}

// Configure gives the guest its identity. Nothing of it is secret.
type Configure struct {
	Hostname string `json:"hostname"`
	// MachineID, 32 hexadecimal digits, is written to /etc/machine-id; "" leaves
	// that as it is.
	MachineID string            `json:"machine_id,omitempty"`
	Env       map[string]string `json:"env"` // defaults of every exec
	User      User              `json:"user"`
	// CAPEM is the installation's CA certificate. The agent writes it, and a
	// bundle of the template's roots plus it, under /run/cofferdam/tls.
	CAPEM []byte `json:"ca_pem"`
	Seed  []byte `json:"seed"` // entropy
	Now   int64  `json:"now"`  // unix nanoseconds
	// Proxy has the agent be a proxy, for tools that want one.
	Proxy  bool       `json:"proxy,omitempty"`
	Names  []string   `json:"names"` // registry names: answered by the agent without asking the host, port 443
	Limits ExecLimits `json:"limits"`
	// Workspace is a directory to make where there is none; "" for none.
	Workspace         string `json:"workspace,omitempty"`
	WorkspaceReadOnly bool   `json:"workspace_read_only,omitempty"` // it belongs to root
	// Owned are paths below the user's home whose directories become the user's: an engine
	// makes those on the way to its mounts as root.
	Owned []string `json:"owned,omitempty"`
}

// User is who runs commands in the sandbox.
type User struct {
	Name string `json:"name"`
	UID  int    `json:"uid"`
	GID  int    `json:"gid"`
	Home string `json:"home"`
}

// SharedUsers is a variable of PID 1, not empty where the kernel that counts a user's
// processes counts those of others outside with them: the sandbox's users are the host's
// numbers. A limit for each user would keep out commands for what strangers run.
const SharedUsers = "COFFERDAM_SHARED_USERS"

// ExecLimits are the resource limits of every command.
type ExecLimits struct {
	NProc  int `json:"nproc"`  // RLIMIT_NPROC
	NoFile int `json:"nofile"` // RLIMIT_NOFILE
}

// LimitEach in PID 1's environment, with whatever value, says that its own limit of
// processes is above that of commands, which it then sets for each: where the kernel
// counts a user's processes at the start of that user's next one, too, a command that has
// used them up would keep all others out.
const LimitEach = "COFFERDAM_LIMIT_EACH"

// Exec starts a command. Argv is passed verbatim, never through a shell.
type Exec struct {
	ID      string            `json:"id"` // the command's id, unique in the sandbox
	Argv    []string          `json:"argv"`
	Env     map[string]string `json:"env,omitempty"`  // over Configure.Env
	Dir     string            `json:"dir,omitempty"`  // "" is the home
	User    string            `json:"user,omitempty"` // "" is the default user; "root" is root without capabilities; a number is anyone
	PTY     *WindowSize       `json:"pty,omitempty"`
	Stdin   bool              `json:"stdin"`                // false: /dev/null
	Timeout int64             `json:"timeout_ms,omitempty"` // 0: none; the whole process tree is killed
	Grace   int64             `json:"grace_ms,omitempty"`   // SIGTERM to SIGKILL at the timeout
}

// WindowSize of a terminal.
type WindowSize struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Signal to a command's process group ("INT", "TERM", ...); Tree also reaches
// processes that left the group.
type Signal struct {
	Name string `json:"name"`
	Tree bool   `json:"tree,omitempty"`
}

// Started tells that the command runs.
type Started struct {
	PID int `json:"pid"`
}

// Exit is how a command ended.
type Exit struct {
	Code     int    `json:"code"`             // as a shell would say it: 128+n for signal n, 127 not found, 126 not executable
	Signal   string `json:"signal,omitempty"` // "KILL", ...
	TimedOut bool   `json:"timed_out,omitempty"`
	Error    string `json:"error,omitempty"` // the command could not be started: one sentence
	// Claimed is set by the keeper where the four above are what the guest says.
	Claimed bool `json:"claimed,omitempty"`
	// Filled by the keeper, which counts: bytes the guest sent, and whether
	// some were not kept.
	StdoutBytes int64 `json:"stdout_bytes"`
	StderrBytes int64 `json:"stderr_bytes"`
	Truncated   bool  `json:"truncated"`
}

// Gap stands where output was dropped.
type Gap struct {
	Bytes int64 `json:"bytes"`
}
