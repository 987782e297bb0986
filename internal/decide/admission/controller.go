// Package admission decides behind the door: every "may this happen?" goes through the
// Controller, which asks package policy, writes the audit record before anything
// happens, and answers. A question that cannot be decided or recorded is refused.
//
// The questions and answers, and the words for them, are package door's.
package admission

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"log/slog"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/building"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/claims"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/planning"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/provenance"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Config is what a Controller is made of. Log and Trust are needed.
type Config struct {
	Log   audit.Log
	Trust func(ctx context.Context, hosts []string) (door.Certificate, error)
	// Leaf gives a certificate for a name that one of the hosts is or has, under the
	// authority of just these hosts; nil: there are none.
	Leaf func(ctx context.Context, hosts []string, name string) (door.Certificate, error)
	// TellTrust has a sandbox that lives trust the authority of hosts, beside that of those
	// which its policy began with; nil: none can be told.
	TellTrust func(ctx context.Context, sandbox string, hosts []string) error
	// Clock is the time that policy judges by; nil is the host's, which is believed.
	Clock clock.Source
	// Advisories are the imported facts about packages; nil: none.
	Advisories advisory.Source
	// Namespaces are the installation's own; a policy's come on top.
	Namespaces []policy.Namespace
	Limits     Limits
	// Clients tell which commands are installs, and of what; nil: none is.
	Clients claims.Clients
	// Approvals is the queue of held requests; nil: nobody can be asked, and a
	// hold is a refusal.
	Approvals Approvals
	// Secrets are those that policies can name; nil: none.
	Secrets *secret.Broker
	// Trees finds out what an install that waits brings; nil: each release is asked for
	// by itself.
	Trees planning.Trees
	// Holder is told what sandboxes wait for; nil: nobody is.
	Holder Holder
	// Settle has put on record, by Failed and the like, what others count of a sandbox that has ended and record only at
	// times. An error says why that may not be all. nil: nobody counts anything.
	Settle func(ctx context.Context, sandbox string) error
	// OnExceeded is called, once and in a goroutine of its own, when a
	// sandbox's records passed the quota; may be nil.
	OnExceeded func(sandbox string)
	// Workshops are where source distributions are built, and BuildDir is for what was
	// built; nil: nothing is built.
	Workshops building.Maker
	BuildDir  string
	// Tools are the functions of the host that sandboxes may call; nil: there are none.
	Tools *tool.Set
	Calls CallLimits
	// FindingsKey is what digests of found values are keyed with; empty: a key that is
	// forgotten with the Controller.
	FindingsKey []byte
	// Scans are the rules by which secrets are found in what registries are asked for; nil:
	// those for secrets.
	Scans  func() *dlp.Set
	Logger *slog.Logger // for the operator; nil: it is told nothing

	owners  audit.OwnerKeys // of FindingsKey
	judging *judgement
	owed    func(b *records.Book) // is told of a book with records that the log did not take
}

// Limits bound what one sandbox can make the daemon keep. A zero field is its
// default.
type Limits struct {
	Records        int   // of what the guest causes, before the run is cut; 20,000
	Names          int   // distinct refused names recorded, and as many requests, and tools; 50
	Requests       int   // to hosts that have a record of their own; 10,000
	Refusals       int   // distinct refusals kept for `cofferdam why`; 1,000
	Edges          int   // requirements of admitted releases; 50,000
	Requirements   int   // requirements of releases that were shown, admitted or not; 500,000
	EdgesPerParent int   // requirements of one release; 2,000
	Remembered     int64 // bytes of what one sandbox was shown and what that requires; 32 MiB
	AllRemembered  int64 // of all sandboxes together, past which each has 8 MiB; 96 MiB
	Inventory      int   // newly found packages recorded at one time; 20,000
	Indexes        int   // index verdicts kept, for all sandboxes; 1,024
	IndexBytes     int64 // that they take, together; 48 MiB
	Waiting        int   // requests of one sandbox that are kept waiting for a person; 64
	AllWaiting     int   // those of all sandboxes; 1,024
	// Tree is how long it may take to find out what an install brings; a minute.
	Tree time.Duration
}

// leastRemembered is what a sandbox may remember however much the others do.
const leastRemembered = 8 << 20

func (l Limits) orDefaults() Limits {
	set := func(field *int, value int) {
		if *field <= 0 {
			*field = value
		}
	}
	set(&l.Records, 20_000)
	set(&l.Names, 50)
	set(&l.Requests, 10_000)
	set(&l.Refusals, 1_000)
	set(&l.Edges, 50_000)
	set(&l.Requirements, 500_000)
	set(&l.EdgesPerParent, 2_000)
	bytes := func(field *int64, value int64) {
		if *field <= 0 {
			*field = value
		}
	}
	bytes(&l.Remembered, 32<<20)
	bytes(&l.AllRemembered, 96<<20)
	bytes(&l.IndexBytes, 48<<20)
	set(&l.Inventory, 20_000)
	set(&l.Indexes, 1_024)
	set(&l.Waiting, 64)
	set(&l.AllWaiting, 1_024)
	if l.Tree <= 0 {
		l.Tree = time.Minute
	}
	return l
}

// Controller is the one door. It is safe for concurrent use.
type Controller struct {
	*Lives
	*Distribution
	*Codes
	*Toolbox
	*Injection
	*Requests
	*Pushes
	*Findings
	*Files
	*Builds

	config  Config
	indexes *indexCache
	// remembered is what all tenants remember of what they were shown.
	remembered *ledger.Budget
	ledgers    ledgers

	// earlier is what was served to all runs, by which later ones know it again.
	earlier provenance.Earlier

	tenants *tenants

	holds *holds
	desk  *planning.Desk // where rehearsals are made; nil: none are
}

var _ door.Door = (*Controller)(nil)

// New makes a Controller that knows no sandbox yet.
func New(config Config) *Controller {
	config = config.withDefaults()
	known := &tenants{by: map[string]*tenant{}}
	files := &Files{tenants: known, open: map[uint64]*FileBegun{}}
	lives := &Lives{log: config.Log, tenants: known, files: files, overdue: overdue{log: config.Log}, settle: config.Settle, logger: config.Logger}
	config.owed, known.left = lives.overdue.keepOwing, lives.overdue.keepBook
	c := &Controller{
		Lives:        lives,
		Files:        files,
		Distribution: &Distribution{tenants: known},
		Codes:        &Codes{tenants: known},
		Toolbox:      &Toolbox{tenants: known, tools: config.Tools, queue: newCallQueue(config.Calls), log: config.Logger},
		Injection:    &Injection{tenants: known, secrets: config.Secrets},
		Requests:     &Requests{tenants: known, log: config.Log, leaf: config.Leaf, tell: config.TellTrust},
		Findings:     &Findings{tenants: known, key: config.FindingsKey},
		config:       config,
		indexes:      newIndexCache(config.Limits.Indexes, config.Limits.IndexBytes),
		remembered:   ledger.NewBudget(config.Limits.AllRemembered, leastRemembered),
		tenants:      known,
	}
	c.holds = newHolds(&c.config)
	c.Toolbox.holds = c.holds
	c.Pushes = &Pushes{tenants: known, holds: c.holds}
	c.Builds = newBuilds(c)
	if config.Trees != nil && config.Approvals != nil {
		about := knowledge{config: &c.config}
		c.desk = &planning.Desk{
			Trees: config.Trees, Timeout: config.Limits.Tree, Plan: c.Plan, Describe: about.describeAsk, Ask: about.fileAsk, AskTree: config.Approvals.AskTree,
		}
		c.desk.Open()
	}
	return c
}

// withDefaults is a configuration with what was left out.
func (config Config) withDefaults() Config {
	if config.Clock == nil {
		config.Clock = clock.Plain(time.Now)
	}
	if config.Scans == nil {
		config.Scans = sync.OnceValue(func() *dlp.Set { return dlp.NewSet(secrets.Rules()...) })
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if len(config.FindingsKey) == 0 {
		config.FindingsKey = make([]byte, sha256.Size)
		rand.Read(config.FindingsKey) // never fails: it ends the process instead
	}
	config.judging = newJudgement()
	config.owners = audit.NewOwnerKeys(config.FindingsKey)
	config.Limits = config.Limits.orDefaults()
	return config
}

// Run is a sandbox and the agent task that it works for.
type Run struct {
	Sandbox  string // the keeper's id
	Run      string // agent_run_id
	Task     string
	User     string // who started it, on the host
	Token    string // whose sandbox it is; "": the host's
	Template string
	Started  time.Time
	Policy   *policy.Policy
	// Kept reads a policy that narrowed the run, or one that it is a copy of, by its
	// digest; see Controller.NarrowPolicy.
	Kept func(digest string) (*policy.Policy, error)
	// Lock are the run's lockfiles; nil: it has none.
	Lock *lockfile.Set
	// Plan: installs are only weighed, see api.CreateSandbox and Controller.Plan.
	Plan bool
	// Rehearsal is a plan that nobody asked for, made to find out what an install brings
	// (Trees): no code that waits for a person may run in it, so what would be built there
	// is not shown.
	Rehearsal bool
	// StandsIn names what the daemon made the sandbox for, see journal.Info; "": somebody asked
	// for it.
	StandsIn string
	// Source is what a workshop is for: it builds that and nothing else; nil: it is none.
	Source *building.Source
	// TemplateDigest is that of the template's files.
	TemplateDigest string
	// First is the number of its first record, for Restore; 0: unknown, and the whole
	// log is read.
	First uint64
	// Narrowing is what its client gives up of the network; zero: nothing, or what
	// the sandbox had given up that it is a copy of. See Controller.Narrow.
	Narrowing policy.Narrowing
	// Placeholders are what the sandbox holds in place of secrets, by their names.
	Placeholders map[string]string
	// Tools are functions that whoever made the sandbox offers to it alone; nil: none. They
	// are in memory only: a sandbox that outlives its daemon, and a copy, have none.
	Tools *tool.Set
	// Ancestors are the sandboxes that it is a copy of, see RegisterCopy.
	Ancestors []Ancestor
}

// Register makes a sandbox known: before, and after Unregister, everything that
// it asks is refused. A sandbox that outlived the daemon is taken up with Restore.
func (c *Controller) Register(r Run) error {
	if r.Sandbox == "" || r.Run == "" || r.Policy == nil {
		return fault.Invalid("a sandbox is registered with its id, its run and its policy; one is missing")
	}
	for _, one := range r.Tools.All() {
		if _, taken := c.config.Tools.Get(one.Name); taken {
			return fault.Invalid("the daemon's configuration has a tool %s; give the sandbox's another name", one.Name)
		}
	}
	t := newTenant(r, &c.config, c.remembered, &c.earlier, c.desk)
	if err := t.ledger.FollowLock(); err != nil {
		t.forgetTenant()
		return err
	}
	return c.addTenant(t)
}

func (c *Controller) addTenant(t *tenant) error {
	if !t.run.Narrowing.IsZero() {
		t.narrowing.setNarrowing(t.run.Narrowing)
	}
	return c.tenants.addTenant(t)
}

// Unregister forgets a sandbox. Its records stay, and those that are still to be written are: see WriteOverdue.
func (c *Controller) Unregister(sandbox string) { c.tenants.removeTenant(sandbox) }

// admitTenant returns a sandbox that may still ask.
func (c *Controller) admitTenant(ctx context.Context, sandbox string) (*tenant, error) {
	return c.tenants.admitTenant(ctx, sandbox)
}

// Trust implements Door.
func (c *Controller) Trust(ctx context.Context, hosts []string) (door.Certificate, error) {
	if c.config.Trust == nil {
		return door.Certificate{}, fault.New(fault.ErrUnavailable, "this daemon has no certificate authority")
	}
	return c.config.Trust(ctx, hosts)
}
