// Package publish hands out the audit log's checkpoints: to a file, a command, an
// URL, or several of them, in the background.
//
// Vocabulary: a *target* is one place that checkpoints go to; the *state* is the
// file that says what was handed out last (audit.Published).
//
// What is published must lie where whoever can write the log can't: only then
// does it prove anything. Nothing waits for it, and a target that fails is tried
// again, later and later.
package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
)

// Config says what goes where. At least one of File, Command and URL is set.
type Config struct {
	// File has each checkpoint appended, followed by an empty line.
	File string
	// Command is started with each checkpoint on its standard input.
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
	// Patience bounds one attempt at one target.
	Patience   = 30 * time.Second
	firstRetry = time.Second
	lastRetry  = 15 * time.Minute
	// lastPatience bounds the attempt at the end: a daemon waits for it.
	lastPatience = 3 * time.Second
)

// Publisher hands checkpoints out until it is closed.
type Publisher struct {
	config  Config
	targets []target
	cancel  context.CancelFunc
	done    chan struct{}

	// Owned by the goroutine, and by Close after it.
	state audit.Published
	// have is what each target has: one that fails does not make another repeat itself.
	have []int64
}

// target is one place.
type target interface {
	name() string
	publish(ctx context.Context, note []byte) error
}

// Start begins. Close ends it.
func Start(config Config) *Publisher {
	if config.Every == 0 {
		config.Every = defaultEvery
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Publisher{config: config, cancel: cancel, done: make(chan struct{})}
	if config.File != "" {
		p.targets = append(p.targets, fileTarget(config.File))
	}
	if len(config.Command) > 0 {
		p.targets = append(p.targets, commandTarget(config.Command))
	}
	if config.URL != "" {
		p.targets = append(p.targets, newURLTarget(config.URL))
	}
	p.state = p.load()
	p.have = make([]int64, len(p.targets))
	for i := range p.have {
		p.have[i] = p.state.Size
	}
	go p.run(ctx)
	return p
}

// Close ends the publisher: what is on its way is given up, and the newest
// checkpoint gets a last, short attempt.
func (p *Publisher) Close() {
	p.cancel()
	<-p.done
	ctx, cancel := context.WithTimeout(context.Background(), lastPatience)
	defer cancel()
	p.attempt(ctx)
}

// run publishes what is new, every time; after a failure it tries again, twice as
// late each time.
func (p *Publisher) run(ctx context.Context) {
	defer close(p.done)
	retry := firstRetry
	for {
		pause := p.config.Every
		if p.attempt(ctx) {
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

// attempt hands the newest checkpoint to each target that does not have it, and
// reports whether all have.
func (p *Publisher) attempt(ctx context.Context) bool {
	size, note := p.config.Latest()
	if note == nil || size <= p.state.Size {
		return true
	}
	var failures []error
	var to []string
	for i, t := range p.targets {
		to = append(to, t.name())
		if p.have[i] >= size {
			continue
		}
		patient, cancel := context.WithTimeout(ctx, Patience)
		err := t.publish(patient, note)
		cancel()
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", t.name(), err))
			continue
		}
		p.have[i] = size
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return false // given up, which is no failure of the target
	}
	p.report(size, to, errors.Join(failures...))
	return len(failures) == 0
}

// report notes how it went; the operator's log hears of changes only.
func (p *Publisher) report(size int64, to []string, err error) {
	now := time.Now().UTC().Round(0)
	switch {
	case err == nil && p.state.Failure != "":
		p.config.Log.Info("log checkpoints are published again", "size", size)
	case err != nil && p.state.Failure == "":
		p.state.Since = now
		p.config.Log.Warn("a log checkpoint could not be published; it is tried again", "err", err)
	}
	if err != nil {
		p.state.Failure = clip(err.Error())
	} else {
		p.state = audit.Published{Size: size, Time: now, To: to}
	}
	if err := p.save(p.state); err != nil {
		p.config.Log.Warn("what was published can't be noted", "err", err)
	}
}

const maxFailure = 500

func clip(text string) string {
	if len(text) > maxFailure {
		return text[:maxFailure] + "..."
	}
	return text
}

func (p *Publisher) load() (state audit.Published) {
	text, err := os.ReadFile(filepath.Join(p.config.Dir, audit.PublishedName))
	if err != nil || json.Unmarshal(text, &state) != nil {
		return audit.Published{} // it is published once more
	}
	return state
}

// save replaces the state; losing it only makes a checkpoint go out twice.
func (p *Publisher) save(state audit.Published) error {
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	path := filepath.Join(p.config.Dir, audit.PublishedName)
	if err := os.WriteFile(path+".tmp", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
