// Package commands starts commands in sandboxes, follows them to their ends, and puts
// these on record with what they installed.
package commands

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/baseline"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/outputscan"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
)

// Config is what a Runner works with. All fields are needed.
type Config struct {
	Keeper   *keeper.Client
	Door     *admission.Controller
	Outgoing *outputscan.Scanner
	Log      *slog.Logger
}

// Runner starts commands and follows them for as long as its daemon lives.
type Runner struct {
	cfg   Config
	life  context.Context //nolint:containedctx // the daemon's: those who follow outlive any request
	group *sync.WaitGroup // the goroutines of those
}

// NewRunner makes one. Its goroutines end with life, and are in the group until then.
func NewRunner(life context.Context, group *sync.WaitGroup, cfg Config) *Runner {
	return &Runner{cfg: cfg, life: life, group: group}
}

// Place is the sandbox that commands run in, as far as they must know it. All fields are
// needed.
type Place struct {
	Info  journal.Info
	Limit time.Duration // the policy's, of a command's time; 0: none
	State func() journal.State
	Kill  func(ctx context.Context) error
	// Elevate runs a program of root's with rights, and returns its exit code.
	Elevate func(ctx context.Context, e Elevated) (code int, err error)
	// Environment is what commands find now.
	Environment func(ctx context.Context) (map[string]string, error)
	End         func(why string) // ends the sandbox, as its policy asks; returns at once
	// Active is how long the sandbox has not stood still, over the lives of daemons.
	Active func() time.Duration
	// Guarded is told that Guards has one more, which is to be kept; it returns at once.
	Guarded   func()
	Waits     func() *suspend.List
	Inventory *baseline.Taker
	Clients   *Clients
}

// Table has the commands of one sandbox that have not been settled: a command is settled when its
// end and what it installed are on record. Safe for concurrent use.
type Table struct {
	*Runner
	place Place

	elevating atomic.Bool // one at a time: each waits until nothing inside has rights

	mu       sync.Mutex // guards what follows
	byID     map[string]*tableCommand
	starting int             // starts that the keeper has not answered
	killing  map[string]bool // the ids of those that are killed until they have ended
	// inherited are the guards of commands that the daemon before followed, until FollowAgain has them.
	inherited map[string]time.Duration
}

// In makes the table of a sandbox, without commands.
func (r *Runner) In(p Place) *Table {
	return &Table{Runner: r, place: p, byID: map[string]*tableCommand{}, killing: map[string]bool{}}
}

// tableCommand is one started process; settled is closed when its end is on record. How it
// was started is not known of one that another daemon started.
type tableCommand struct {
	id      string
	settled chan struct{}
	argv    []string
	env     map[string]string
	dir     string
	// until is the active time of the sandbox past which it must not go on; 0: it may. The table's mu guards it.
	until time.Duration
	// unwanted: it is killed because nobody waited for its start to the end. Set before it is followed.
	unwanted bool
}

// holdCommand makes a command known to those who wait for it to be settled.
func (t *Table) holdCommand(c *tableCommand) {
	t.mu.Lock()
	t.byID[c.id] = c
	t.mu.Unlock()
	t.place.Clients.Touch()
}

// dropCommand forgets a command that is settled: nobody waits for it.
func (t *Table) dropCommand(c *tableCommand) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byID, c.id)
}

// findCommand finds a command that is not settled; nil: there is none of that id.
func (t *Table) findCommand(id string) *tableCommand {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// Has reports whether a command or a cell has not been settled: its end will be on record.
func (t *Table) Has(id string) bool { return t.findCommand(id) != nil }

// listCommands lists the commands that are not settled.
func (t *Table) listCommands() []*tableCommand {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.byID))
}

// Any tells whether a command is not settled.
func (t *Table) Any() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID) > 0
}

// Started is a command that runs in a sandbox, as it was started. Of a very long one Argv has the program alone, and
// Env is nil.
type Started struct {
	ID   string
	Argv []string
	Env  map[string]string
	Dir  string // "": the home
}

// Started are the commands that have not ended, in the order of their ids.
func (t *Table) Started() []Started {
	var started []Started
	for _, c := range t.listCommands() {
		started = append(started, Started{ID: c.id, Argv: slices.Clone(c.argv), Env: maps.Clone(c.env), Dir: c.dir})
	}
	slices.SortFunc(started, func(a, b Started) int { return cmp.Compare(a.ID, b.ID) })
	return started
}

// Attach returns a connection with the command's frames from the offset on, as its sandbox's
// policy lets them out. keeper.Tail is no client's to ask for: the keeper counts all who follow but the
// daemon's own, which it knows by that.
func (t *Table) Attach(ctx context.Context, cmd string, offset int64) (net.Conn, error) {
	if offset == keeper.Tail {
		return nil, fault.Invalid("offset %d is not within the command's output", offset)
	}
	attach := func(ctx context.Context, offset int64) (net.Conn, error) {
		return t.cfg.Keeper.Attach(ctx, t.place.Info.ID, cmd, offset)
	}
	kill := func() { t.killSurely(cmd, "its output is blocked") } // nobody reads what it writes
	conn, err := t.cfg.Outgoing.Output(ctx, t.place.Info.ID, cmd, offset, attach, kill)
	if err != nil {
		return nil, err
	}
	over, gone := t.place.Clients.attach()
	return attachment{Connection: Count(conn, over), gone: gone}, nil
}
