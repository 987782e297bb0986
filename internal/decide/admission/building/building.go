// Package building has source distributions built, and install scripts run, in sandboxes that are
// thrown away, for runs whose policy says throwaway of these. Nobody has looked into the bytes that
// come out: they are bounded here, and inspected by the gateway like any published file.
//
// A sandbox for one build, which may be a package's scripts, is called a workshop.
package building

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Source is the published file that a workshop is for. It is admitted there by the run that
// wants something made of it.
type Source struct {
	Package pkgref.Ref
	Makes   policy.ArtifactKind // policy.KindBuilt or policy.KindRan
	File    string              // its name
	Digest  string              // that the index gives of it
	SHA256  string              // of its bytes, hex
	Through string              // the entry through which the run admits it
}

// Job is a build that some run wants.
type Job struct {
	Source
	// Key names all that decides what comes of it: equal keys are one build.
	Key     string
	Sandbox string         // of the run that wants it
	Payer   string         // the token or sandbox whose turn it takes
	URL     string         // at which a sandbox gets the source
	Policy  *policy.Policy // of the workshop
}

// Maker builds in a workshop.
type Maker interface {
	// Make builds and writes what was made, of which it writes at most door.MaxBuilt
	// bytes. A *Failure says that the build itself failed; nothing of the workshop is left
	// when it returns.
	Make(ctx context.Context, job Job, to io.Writer) (Origin, error)
}

// Origin is where something was made.
type Origin struct {
	Run      string // of the workshop's records
	File     string // the name that the build gave it: the build's own word
	Template string // name and digest
	Engine   string
}

// Failure is a build that failed.
type Failure struct {
	Sentence string // fixed text
	Output   string // the last lines that it wrote: hostile
	Line     string // the one of them that says most, as far as that is known; as hostile
	Run      string // of the workshop's records
}

// Error implements error.
func (f *Failure) Error() string { return f.Sentence }

// Bounds of builds.
const (
	maxMaking = 2                // at one time
	maxOfOne  = 1                // at one time, for one token or sandbox of the host
	maxLine   = 16               // that wait for one of them
	maxKept   = 8                // of what was made
	keptFor   = 5 * time.Minute  // after it was made or read last
	longest   = 10 * time.Minute // for one build, its wait for a turn aside
)

// Config of a Desk.
type Config struct {
	Maker   Maker
	Dir     string        // for what was made; files there have no names
	Timeout time.Duration // for one build; 0: ten minutes
}

// Desk has jobs done: each key once at a time, a few at once. Safe for concurrent use.
type Desk struct {
	cfg   Config
	turns *fairqueue.Shares

	mu      sync.Mutex       // guards all below
	running map[string]*work // by key
	kept    []*made          // the oldest first
}

// NewDesk makes a desk.
func NewDesk(cfg Config) *Desk {
	if cfg.Timeout <= 0 {
		cfg.Timeout = longest
	}
	return &Desk{cfg: cfg, turns: fairqueue.New(fairqueue.Limits{All: maxMaking, Each: maxOfOne, Line: maxLine}), running: map[string]*work{}}
}

// work is a build under way. The fields behind done are written before that is closed.
type work struct {
	waiters int // guarded by the desk's mu
	cancel  context.CancelFunc
	done    chan struct{}
	result  Result
	err     error
}

// Result is what was made, and where.
type Result struct {
	door.Built
	Origin
}

// Do has a job done, or waits for the same one of another run. The build ends when nobody
// waits for it any more.
func (d *Desk) Do(ctx context.Context, job Job) (Result, error) {
	d.mu.Lock()
	w := d.running[job.Key]
	if w == nil {
		life, cancel := context.WithCancel(context.WithoutCancel(ctx))
		w = &work{cancel: cancel, done: make(chan struct{})}
		d.running[job.Key] = w
		safego.Go(func() { d.doJob(life, job, w) })
	}
	w.waiters++
	d.mu.Unlock()
	select {
	case <-w.done:
	case <-ctx.Done():
	}
	d.mu.Lock()
	if w.waiters--; w.waiters == 0 {
		w.cancel()
		if d.running[job.Key] == w { // who comes now begins anew
			delete(d.running, job.Key)
		}
	}
	d.mu.Unlock()
	select {
	case <-w.done:
		return w.result, w.err
	default:
		return Result{}, ctx.Err()
	}
}

// doJob does a job. A panic is an error of it.
func (d *Desk) doJob(ctx context.Context, job Job, w *work) {
	defer func() {
		w.cancel()
		d.mu.Lock()
		if d.running[job.Key] == w {
			delete(d.running, job.Key)
		}
		d.mu.Unlock()
		close(w.done)
	}()
	w.err = fault.New(fault.ErrUnavailable, "the build did not come to an end")
	err := safego.Try(func() error {
		var err error
		w.result, err = d.makeFile(ctx, job)
		return err
	})
	w.err = err
}

func (d *Desk) makeFile(ctx context.Context, job Job) (Result, error) {
	_, release, err := d.turns.Take(fairqueue.Within(ctx, job.Payer, job.Sandbox))
	if errors.Is(err, fairqueue.ErrCrowded) {
		return Result{}, fault.New(fault.ErrUnavailable, "too many builds wait already; try again later")
	}
	if err != nil {
		return Result{}, err
	}
	defer release()
	file, err := nameless(d.cfg.Dir)
	if err != nil {
		return Result{}, err
	}
	timed, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	m := &made{file: file, sum: sha256.New()}
	origin, err := d.cfg.Maker.Make(timed, job, m)
	switch {
	case err == nil && m.size == 0:
		err = &Failure{Sentence: "the build made an empty file", Run: origin.Run}
	case err != nil && timed.Err() != nil && ctx.Err() == nil:
		err = &Failure{Sentence: "the build took longer than " + d.cfg.Timeout.String(), Run: origin.Run}
	}
	if err != nil {
		return Result{}, errors.Join(err, file.Close())
	}
	m.built = door.Built{SHA256: hex.EncodeToString(m.sum.Sum(nil)), Size: m.size}
	d.keepMade(m)
	return Result{Built: m.built, Origin: origin}, nil
}

// nameless is a file that goes with its descriptor.
func nameless(dir string) (*os.File, error) {
	file, err := os.CreateTemp(dir, "built-*")
	if err == nil {
		err = os.Remove(file.Name())
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "what is built can't be kept in %s", dir)
	}
	return file, nil
}
