package daemon

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/checkpoint"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/report"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi"
)

// openIndex makes the index over the log. It reads nothing yet: a daemon's start
// does not wait for it.
func (d *Daemon) openIndex() {
	d.index = index.New(filepath.Join(d.opts.Paths.State, "index", "audit.db"), d.log, index.Options{})
}

// closeIndex ends it, before the log.
func (d *Daemon) closeIndex() {
	if d.index == nil {
		return
	}
	if err := d.index.Close(); err != nil {
		d.opts.Log.Warn("the index over the audit log did not close well; it is checked when it is opened again", "err", err)
	}
}

// followLog keeps the index caught up in the background. It returns what ends
// that and waits for it.
func (d *Daemon) followLog(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	safego.Go(func() {
		defer close(done)
		last := ""
		safego.Stay(ctx, func() {
			d.index.Follow(ctx, func(err error) {
				if text := err.Error(); text != last { // it is tried again with every record
					d.opts.Log.ErrorContext(ctx, "questions about the audit log can't be answered", "err", err)
					last = text
				}
			})
		})
	})
	return func() {
		cancel()
		<-done
	}
}

// auditing is what the API answers questions about the log with.
func (d *Daemon) auditing() httpapi.Auditing {
	return httpapi.Auditing{
		Index: d.index,
		Reports: report.New(report.Config{
			Index:      d.index,
			Lockfiles:  d.keptLockfiles,
			Upstreams:  d.filePlaces,
			Checkpoint: d.lastCheckpoint,
			Verify:     verifyLog(d),
		}),
		End: d.log.End,
	}
}

func (d *Daemon) keptLockfiles(digest string) (report.Baseline, error) {
	set, err := d.sandboxes.Lockfiles(digest)
	if err != nil {
		return nil, err
	}
	return set, nil
}

// filePlaces are, by ecosystem, where its upstreams and the file hosts that these
// link to are. A host that was learnt in this daemon's time and is nobody else's
// may be any ecosystem's.
func (d *Daemon) filePlaces() map[string][]string {
	d.gateway.mu.Lock()
	learnt := slices.Clone(d.gateway.names)
	d.gateway.mu.Unlock()
	places, taken := map[string][]string{}, map[string]bool{}
	add := func(ecosystem, place string) {
		places[ecosystem] = append(places[ecosystem], place)
		taken[place] = true
	}
	for _, up := range d.gateway.currentUpstreams() {
		add(string(up.Ecosystem), index.Host(up.Index))
		for _, host := range up.FileHosts {
			add(string(up.Ecosystem), "https://"+host)
		}
	}
	for _, host := range learnt {
		if place := "https://" + host; !taken[place] {
			for ecosystem := range places {
				places[ecosystem] = append(places[ecosystem], place)
			}
		}
	}
	return places
}

// coverLimit is how long a report waits for a checkpoint of what the log has.
const coverLimit = 5 * time.Second

// verifyLog verifies the log's files before a report, by the keys and the last checkpoint that
// this process has: what lies beside the files is whoever's who changed them. One at a time does,
// since it reads all of the log: about three seconds for a million records.
func verifyLog(d *Daemon) func(ctx context.Context) (audit.Verdict, error) {
	turn := make(chan struct{}, 1)
	return func(ctx context.Context) (audit.Verdict, error) {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return audit.Verdict{}, context.Cause(ctx)
		}
		if err := audit.AwaitCovered(ctx, d.log, coverLimit); err != nil {
			return audit.Verdict{}, err
		}
		ring, err := checkpoint.NewKeyring(strings.Join(d.log.PublicKeys(), "\n"))
		if err != nil {
			return audit.Verdict{}, fault.Wrap(fault.ErrUnavailable, err, "the log can't be verified, so no report is made of it")
		}
		_, note := d.log.Checkpoint()
		return audit.Verify(ctx, d.opts.Paths.Audit(), audit.VerifyOptions{Keys: &ring, Kept: note})
	}
}

// lastCheckpoint is the newest log checkpoint in a line.
func (d *Daemon) lastCheckpoint() string {
	last, note := d.log.Checkpoint()
	if note == nil {
		return ""
	}
	return fmt.Sprintf("the log checkpoint of %s covers records 0 to %d", last.Time.UTC().Format(time.RFC3339), last.Size-1)
}
