package sandbox

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/building"
	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/commands"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/copies"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

const (
	maxTask = 4 << 10 // bytes

	maxKey = 256 // bytes

	maxLifetime   = 365 * 24 * time.Hour
	leastLease    = 5 * time.Second // what a client needs to come back after its daemon did
	maxLabels     = 64
	maxLabelKey   = 256     // bytes
	maxLabelValue = 4 << 10 // bytes
)

// Request is what somebody wants a sandbox to be.
type Request struct {
	Run      string
	Task     string
	Template string
	Engine   string
	Policy   *policy.Policy
	// PolicySource is the document's path on the host, "" for the built-in one.
	PolicySource string
	PolicyText   []byte
	// MadeFrom are the paths of the host's files of which the client made the document.
	MadeFrom []string
	// Lock are the run's lockfiles, named by their paths on the host; nil: none.
	Lock    *lockfile.Given
	Mounts  []mountpolicy.Mount
	Env     map[string]string
	Workdir string
	Linger  bool
	Plan    bool // installs are only weighed: see admission.Run
	// Rehearsal is a plan that nobody asked for: see admission.Run.
	Rehearsal bool
	// source has it be a workshop: see admission.Run.
	source *building.Source
	// Snapshot, an id or name, is what the sandbox is made from; "": the template.
	// Template, Engine and Mounts are the snapshot's then, and must be empty.
	Snapshot string
	Lifetime Lifetime
	Owner    Owner
	Account  Account
	Labels   map[string]string
	// Home, if its name is not "", keeps these directories of the home directory: see
	// package agenthome.
	Home  agenthome.Home
	Keeps []string
	// Narrowing is what the client gives up of the network; see Manager.Narrow.
	Narrowing policy.Narrowing
	// Tools are functions of the caller's that this sandbox may call: see admission.Run.
	Tools *tool.Set
	// proof has it be a twin for probes: nothing of the host can be written, and its limits
	// are low.
	proof bool
	// from is what Snapshot names, or the image of a fork.
	from *copies.Origin
	// IdempotencyKey makes a second request of the same owner with the same key
	// get the first one's sandbox; "": none.
	IdempotencyKey string
	// User is who asked, for the record; HostUID and HostGID own the files
	// that the sandbox makes on read-write mounts.
	User             string
	HostUID, HostGID int
}

// checkRequest refuses what no sandbox could be.
func checkRequest(req Request) error {
	if req.Policy == nil {
		return fault.Invalid("a sandbox needs a policy")
	}
	if req.Policy.Lockfiles().Given && req.Lock == nil {
		return fault.Invalid("the policy holds installations to lockfiles, and the request has none")
	}
	if req.Run != "" && !validRun(req.Run) {
		return fault.Invalid("the run id %q is not valid: up to 128 letters, digits, dots, dashes and underscores, starting with a letter or digit", req.Run)
	}
	if len(req.Task) > maxTask {
		return fault.Invalid("the task is %d bytes long; at most %d", len(req.Task), maxTask)
	}
	if len(req.Workdir) > commands.MaxDir {
		return fault.Invalid("the working directory is a path of %d bytes; at most %d", len(req.Workdir), commands.MaxDir)
	}
	if req.Workdir != "" && !strings.HasPrefix(req.Workdir, "/") {
		return fault.Invalid("the working directory %q must be an absolute path of the sandbox", req.Workdir)
	}
	if len(req.IdempotencyKey) > maxKey {
		return fault.Invalid("the idempotency key is %d bytes long; at most %d", len(req.IdempotencyKey), maxKey)
	}
	if !req.Home.IsZero() && (req.Snapshot != "" || req.from != nil || req.Plan) {
		return fault.Invalid("a sandbox that is a copy, or that is made for a plan, has no home that is kept")
	}
	if err := checkLifetime(req.Lifetime); err != nil {
		return err
	}
	if err := checkLabels(req.Labels); err != nil {
		return err
	}
	return commands.CheckEnv(req.Env)
}

// checkLifetime refuses what is no time.
func checkLifetime(l Lifetime) error {
	for name, d := range map[string]time.Duration{"lifetime": l.TTL, "idle time": l.Idle} {
		if d < 0 || d > maxLifetime {
			return fault.Invalid("the sandbox's %s is %s; it must be between 0 (no end) and %s", name, d, maxLifetime)
		}
	}
	if l.Lease != 0 && l.Lease != NoLease && (l.Lease < leastLease || l.Lease > maxLifetime) {
		return fault.Invalid("the sandbox's lease is %s; it must be between %s and %s, or 0 for none", l.Lease, leastLease, maxLifetime)
	}
	if l.Then != ThenDestroy && !l.Then.Pauses() {
		return fault.Invalid("a sandbox whose time is over can't be made %.20q; it is destroyed, or paused with %q or %q", l.Then, ThenPause, ThenPauseFiles)
	}
	return nil
}

// checkLabels bounds what is kept for others.
func checkLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return fault.Invalid("the sandbox has %d labels; at most %d", len(labels), maxLabels)
	}
	for k, v := range labels {
		switch {
		case k == "" || len(k) > maxLabelKey:
			return fault.Invalid("the label %.80q has a name of %d bytes; 1 to %d are possible", k, len(k), maxLabelKey)
		case len(v) > maxLabelValue:
			return fault.Invalid("the label %.80q is %d bytes long; at most %d", k, len(v), maxLabelValue)
		}
	}
	return nil
}

var runName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

func validRun(id string) bool {
	return runName.MatchString(id)
}

// askedMounts are those of a request and of its policy.
func askedMounts(req Request) []mountpolicy.Mount {
	asked := slices.Concat(req.Mounts, mountpolicy.OfPolicy(req.Policy))
	if req.Plan || req.proof { // what nobody has admitted may run in a plan, and a probe writes if it can
		for i := range asked {
			asked[i].ReadWrite = false
		}
	}
	return asked
}

// decidingFiles are those on the host that decide what a later run may do: the policy,
// what it was made of, and the lockfiles.
func decidingFiles(req Request) []string {
	files := slices.Clone(req.MadeFrom)
	if req.PolicySource != "" {
		files = append(files, req.PolicySource)
	}
	if req.Lock != nil {
		for _, s := range req.Lock.Sources {
			files = append(files, s.Name)
		}
	}
	return files
}
