package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

const (
	// checkTimeout bounds one check; checkKept is how long its result is believed, so
	// that whoever asks often costs nothing.
	checkTimeout = 2 * time.Second
	checkKept    = time.Second
	// logRoom is what the disk of the log needs to be called writable.
	logRoom = 16 << 20
)

// check is something that must be well for the daemon to serve.
type check struct {
	name string
	ask  func(ctx context.Context) error
}

// result is what a check said.
type result struct {
	name string
	err  error // nil: it passes
}

// health asks the checks, all at once and at most once in a while.
type health struct {
	checks []check

	mu    sync.Mutex // guards what follows, and is held while the checks are asked
	last  []result
	taken time.Time
}

// results are in the order of the checks.
func (h *health) results(ctx context.Context) []result {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last != nil && time.Since(h.taken) < checkKept {
		return h.last
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	all := make([]result, len(h.checks))
	var asking sync.WaitGroup
	for i, c := range h.checks {
		safego.In(&asking, func() { all[i] = result{c.name, safego.Try(func() error { return c.ask(ctx) })} })
	}
	asking.Wait()
	h.last, h.taken = all, time.Now()
	return all
}

// serveReady answers whether all checks pass, a line each; with reasons only where
// none but the operator asks.
func (h *health) serveReady(reasons bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		var text strings.Builder
		for _, c := range h.results(r.Context()) {
			switch {
			case c.err == nil:
				fmt.Fprintf(&text, "%s: ok\n", c.name)
				continue
			case reasons:
				fmt.Fprintf(&text, "%s: %s\n", c.name, c.err)
			default:
				fmt.Fprintf(&text, "%s: failed\n", c.name)
			}
			status = http.StatusServiceUnavailable
		}
		answerText(w, status, text.String())
	}
}

// serveAlive answers that the process serves at all.
func serveAlive(w http.ResponseWriter, _ *http.Request) { answerText(w, http.StatusOK, "ok\n") }

func answerText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // who asked may have gone
}

// checks are what readiness is.
func (d *Daemon) checks() []check {
	return []check{
		{"keeper", d.keeper.Ping},
		{"log", d.logWritable},
		{"gateway", func(context.Context) error { return d.gateway.serves() }},
		{"template", func(ctx context.Context) error {
			_, err := d.templates.Get(ctx, d.opts.Config.DefaultTemplate)
			return err
		}},
		{"room", func(context.Context) error { return d.sandboxes.Room() }},
	}
}

func (d *Daemon) logWritable(ctx context.Context) error {
	if err := d.log.Healthy(ctx); err != nil {
		return err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(d.opts.Paths.Audit(), &fs); err != nil {
		return fmt.Errorf("the audit log's directory can't be looked at: %w", err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < logRoom {
		return fmt.Errorf("the disk of the audit log has %d MiB free; it needs %d", free>>20, logRoom>>20)
	}
	return nil
}

// serves says whether a gateway runs and has its certificate; nil: it does.
func (g *gatewayProcess) serves() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.known:
	default:
		return errors.New("the gateway is starting")
	}
	if g.broken != nil {
		return fmt.Errorf("the gateway does not come up: %w", g.broken)
	}
	if !g.up {
		return errors.New("the gateway ended and is being started again")
	}
	return nil
}

// noteRunning notes whether a gateway's process runs.
func (g *gatewayProcess) noteRunning(up bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.up = up
}
