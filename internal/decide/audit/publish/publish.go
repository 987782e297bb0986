// Package publish hands out the audit log's checkpoints: to a file, a command, an
// URL, or several of them, in the background.
//
// A checkpoint goes to one or more targets. A file beside the log says what was handed out last
// (audit.Published).
//
// A published copy must lie where whoever can write the log can't: only then
// does it prove anything. Nothing waits for it, and a target that fails is tried
// again, later and later.
//
// A URL may have a password in it, which its target is shown. Nothing of the answer is kept but the status' number.
package publish

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Config says what goes where. At least one of File, Command and URL is set.
type Config struct {
	// File has each checkpoint appended, followed by an empty line. It is an absolute path.
	File string
	// Written returns the directories that sandboxes were ever given to write to: no link in them
	// leads to File, and Command does not lie there. Required with either.
	Written func() ([]hostpath.Tree, error)
	// Command is a program by its absolute path, and its arguments. It is started with each checkpoint on its standard input.
	Command []string
	// URL gets each checkpoint in a POST, as text/plain.
	URL string
	// Every is the least time between two; 0 is a minute.
	Every time.Duration
	// Dir is the log's directory: the state is kept there.
	Dir string
	// Latest returns the newest checkpoint's size and note; nil: there is none.
	Latest func() (size int64, note []byte)
	Log    *slog.Logger
}

const (
	defaultEvery = time.Minute
	// AttemptTimeout bounds one attempt at one target.
	AttemptTimeout = 30 * time.Second
	firstRetry     = time.Second
	lastRetry      = 15 * time.Minute
	// lastTimeout bounds the attempt at the end: a daemon waits for it.
	lastTimeout = 3 * time.Second
)

// Publisher hands checkpoints out until it is closed. Each target has a goroutine:
// one that is slow or fails does not keep another waiting.
type Publisher struct {
	config  Config
	targets []target
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex // guards state and its file
	state audit.Published
}

// target is one place.
type target interface {
	targetName() string
	publishNote(ctx context.Context, note []byte) error
}

// Start begins. Close ends it.
func Start(config Config) *Publisher {
	var targets []target
	if config.File != "" {
		targets = append(targets, fileTarget{config.File, config.Written})
	}
	if len(config.Command) > 0 {
		targets = append(targets, commandTarget{config.Command, config.Written, &executable.Sums{}})
	}
	if config.URL != "" {
		targets = append(targets, newURLTarget(config.URL))
	}
	return startPublisher(config, targets...)
}

func startPublisher(config Config, targets ...target) *Publisher {
	if config.Every == 0 {
		config.Every = defaultEvery
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Publisher{config: config, targets: targets, cancel: cancel}
	p.loadState()
	for i := range p.targets {
		safego.In(&p.running, func() { safego.Stay(ctx, func() { p.runTarget(ctx, i) }) })
	}
	return p
}

// Close ends the publisher: what is on its way is given up, and the newest
// checkpoint gets a last, short attempt.
func (p *Publisher) Close() {
	p.cancel()
	p.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), lastTimeout)
	defer cancel()
	for i := range p.targets {
		safego.In(&p.running, func() { p.attempt(ctx, i) })
	}
	p.running.Wait()
}

// runTarget publishes to one target what is new, every time; after a failure it tries
// again, twice as late each time.
func (p *Publisher) runTarget(ctx context.Context, i int) {
	retry := firstRetry
	for {
		pause := p.config.Every
		if p.attempt(ctx, i) {
			retry = firstRetry
		} else {
			pause, retry = retry, min(2*retry, lastRetry)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// attempt hands the newest checkpoint to a target, if that does not have it, and
// reports whether it has it then.
func (p *Publisher) attempt(ctx context.Context, i int) bool {
	size, note := p.config.Latest()
	p.mu.Lock()
	has := p.state.Targets[i].Size
	p.mu.Unlock()
	if note == nil || size <= has {
		return true
	}
	bounded, cancel := context.WithTimeout(ctx, AttemptTimeout)
	defer cancel()
	err := p.targets[i].publishNote(bounded, note)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return false // given up, which is no failure of the target
	}
	p.report(i, size, err)
	return err == nil
}

// report notes how it went; the operator's log hears of changes only.
func (p *Publisher) report(i int, size int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now().UTC().Round(0)
	t := &p.state.Targets[i]
	switch {
	case err == nil && t.Failure != "":
		p.config.Log.Info("log checkpoints are published again", "to", t.Name, "size", size)
	case err != nil && t.Failure == "":
		t.Since = now
		p.config.Log.Warn("a log checkpoint could not be published; it is tried again", "to", t.Name, "err", err)
	}
	if err != nil {
		t.Failure = text.Shorten(err.Error(), maxFailure)
	} else {
		*t = audit.PublishedTo{Name: t.Name, Size: size, Time: now}
	}
	if err := p.saveState(); err != nil {
		p.config.Log.Warn("what was published can't be noted", "err", err)
	}
}

const maxFailure = 500

// loadState takes what is known of the targets of now.
func (p *Publisher) loadState() {
	before, err := audit.ReadPublished(p.config.Dir)
	for _, t := range p.targets {
		now := audit.PublishedTo{Name: t.targetName()}
		for _, known := range before.Targets {
			if err == nil && known.Name == now.Name {
				now = known
			}
		}
		p.state.Targets = append(p.state.Targets, now)
	}
}

// saveState replaces the state; losing it only makes a checkpoint go out twice.
func (p *Publisher) saveState() error {
	text, err := json.Marshal(p.state)
	if err != nil {
		return err
	}
	path := filepath.Join(p.config.Dir, audit.PublishedName)
	return atomicfile.ReplaceVolatile(path, append(text, '\n'), 0o600)
}
