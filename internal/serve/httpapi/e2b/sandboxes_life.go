package e2b

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

func (c *Control) serveInfo(w http.ResponseWriter, r *keyedRequest) error {
	sb, err := c.ownSandbox(r)
	if err != nil {
		return err
	}
	return writeAnswer(r.Context(), w, http.StatusOK, c.detail(sb))
}

func (c *Control) serveKill(w http.ResponseWriter, r *keyedRequest) error {
	sb, err := c.ownSandbox(r)
	if err != nil {
		return err
	}
	if err := c.cfg.Sandboxes.Destroy(r.Context(), sb.Info().ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// lifeBody is the body of what only moves a sandbox's end.
type lifeBody struct {
	Timeout  *int64 `json:"timeout"`  // seconds
	Duration *int64 `json:"duration"` // seconds, of a refresh
}

// setTimeout moves a sandbox's end, nearer too.
func (c *Control) setTimeout(w http.ResponseWriter, r *keyedRequest) error {
	var body lifeBody
	sb, life, err := c.lifeRequest(r, &body, func() *int64 { return body.Timeout }, 0)
	if err != nil {
		return err
	}
	if body.Timeout == nil {
		return fault.Invalid("timeout is missing: a number of seconds")
	}
	if err := c.setEnd(r, sb, life.TTL); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// refresh moves a sandbox's end away, never nearer.
func (c *Control) refresh(w http.ResponseWriter, r *keyedRequest) error {
	var body lifeBody
	sb, life, err := c.lifeRequest(r, &body, func() *int64 { return body.Duration }, defaultTimeout1)
	if err != nil {
		return err
	}
	if err := c.prolong(r, sb, life.TTL); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// lifeRequest reads a body with a number of seconds, and finds the sandbox that it is
// for. A number that no sandbox may have is refused whether there is the sandbox or not.
func (c *Control) lifeRequest(r *keyedRequest, body any, seconds func() *int64, absent time.Duration) (*sandbox.Sandbox, sandbox.Lifetime, error) {
	if err := readJSON(r, body); err != nil {
		return nil, sandbox.Lifetime{}, err
	}
	life, err := c.timeout(seconds(), absent)
	if err != nil {
		return nil, sandbox.Lifetime{}, err
	}
	sb, err := c.ownSandbox(r)
	return sb, life, err
}

// setEnd sets a sandbox's end. Whether it is paused or destroyed then stays as it was asked for.
func (c *Control) setEnd(r *keyedRequest, sb *sandbox.Sandbox, ttl time.Duration) error {
	life := sb.Lifetime()
	life.TTL = ttl
	return c.cfg.Sandboxes.SetLifetime(r.Context(), sb.Info().ID, life)
}

func (c *Control) prolong(r *keyedRequest, sb *sandbox.Sandbox, ttl time.Duration) error {
	if ends := sb.Ends(); ends.IsZero() || !time.Now().Add(ttl).After(ends) {
		return nil
	}
	return c.setEnd(r, sb, ttl)
}

// connectBody is the body of a connect or resume.
type connectBody struct {
	Timeout   *int64 `json:"timeout"`   // seconds
	Memory    *bool  `json:"memory"`    // false: start anew on the files
	AutoPause *bool  `json:"autoPause"` // of the first version; ours is settled when a sandbox is made, and kept
}

// going is what a connect or resume asks for.
type going struct {
	sandbox *sandbox.Sandbox
	ttl     time.Duration
	anew    bool // if it is paused: on its files, without what its memory had
}

func (c *Control) connectRequest(r *keyedRequest) (going, error) {
	var body connectBody
	sb, life, err := c.lifeRequest(r, &body, func() *int64 { return body.Timeout }, defaultTimeout2)
	return going{sandbox: sb, ttl: life.TTL, anew: body.Memory != nil && !*body.Memory}, err
}

// serveConnect gives a client what it needs to use a sandbox, and wakes one that is
// paused. One that waits for a person stays where it is: the answer says for what.
func (c *Control) serveConnect(w http.ResponseWriter, r *keyedRequest) error {
	want, err := c.connectRequest(r)
	if err != nil {
		return err
	}
	if err := backend.Promise(r.Context(), 1, c.created(want.sandbox.Info())); err != nil {
		return err
	}
	resumed, err := c.resumeSandbox(r, want)
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if !resumed {
		status = http.StatusOK
		if err := c.prolong(r, want.sandbox, want.ttl); err != nil {
			return err
		}
	}
	c.cfg.Sandboxes.Touch(want.sandbox.Info().ID)
	return writeAnswer(r.Context(), w, status, c.created(want.sandbox.Info()))
}

// resumeSandbox lets a paused sandbox go on, for the time given; what becomes of it then stays
// as it was. Its clock stands still while it is paused, so that is where it is set: with
// what was left of the old time it could be over at once.
func (c *Control) resumeSandbox(r *keyedRequest, want going) (resumed bool, err error) {
	sb, ttl := want.sandbox, want.ttl
	resume := c.cfg.Sandboxes.ResumeFiles
	if !want.anew {
		if err := checkAnswered(r.Context(), sb); err != nil {
			return false, err
		}
		resume = c.cfg.Sandboxes.Resume
	}
	id, before := sb.Info().ID, sb.Lifetime()
	state, _ := sb.State()
	early := state == sandbox.Paused
	if early {
		if err := c.setEnd(r, sb, ttl); err != nil {
			return false, err
		}
	}
	resumed, err = resume(r.Context(), id)
	switch {
	case err != nil && early:
		return resumed, errors.Join(err, c.cfg.Sandboxes.SetLifetime(context.WithoutCancel(r.Context()), id, before))
	case err == nil && resumed && !early:
		err = c.setEnd(r, sb, ttl)
	}
	return resumed, err
}

// checkAnswered refuses to bring back an agent that did not answer when its sandbox was paused. Whether it does is not known
// before a pause that is under way has ended.
func checkAnswered(ctx context.Context, sb *sandbox.Sandbox) error {
	if err := sb.AwaitPause(ctx); err != nil || !sb.SilentAtPause() {
		return err
	}
	return fault.Wrap(fault.ErrConflict, errSilent, "the agent of the sandbox %s did not answer when it was paused, and its memory has that agent: start it anew on its files, with memory: false (on_resume=\"reboot\", onResume: \"reboot\")", sb.Info().ID)
}

// resume is the first version's: a sandbox that runs is a conflict.
func (c *Control) resume(w http.ResponseWriter, r *keyedRequest) error {
	want, err := c.connectRequest(r)
	if err != nil {
		return err
	}
	if err := backend.Promise(r.Context(), 1, c.created(want.sandbox.Info())); err != nil {
		return err
	}
	resumed, err := c.resumeSandbox(r, want)
	if err != nil {
		return err
	}
	if !resumed {
		return fault.New(fault.ErrConflict, "the sandbox %s runs already", want.sandbox.Info().ID)
	}
	return writeAnswer(r.Context(), w, http.StatusCreated, c.created(want.sandbox.Info()))
}

// sample is what a sandbox uses at a time.
type sample struct {
	Timestamp     stamp   `json:"timestamp"`
	TimestampUnix int64   `json:"timestampUnix"`
	CPUCount      float64 `json:"cpuCount"`
	CPUUsedPct    float64 `json:"cpuUsedPct"` // of one core
	MemUsed       int64   `json:"memUsed"`
	MemTotal      int64   `json:"memTotal"`
	MemCache      int64   `json:"memCache"` // not known: 0
	DiskUsed      int64   `json:"diskUsed"`
	DiskTotal     int64   `json:"diskTotal"`
}

// metrics has one sample, of now: none are kept.
func (c *Control) metrics(w http.ResponseWriter, r *keyedRequest) error {
	sb, err := c.ownSandbox(r)
	if err != nil {
		return err
	}
	now := time.Now().Unix()
	samples := []sample{}
	for name, outside := range map[string]func(int64) bool{
		"start": func(at int64) bool { return at > now }, "end": func(at int64) bool { return at < now-1 },
	} {
		content := r.URL.Query().Get(name)
		if content == "" {
			continue
		}
		at, err := strconv.ParseInt(content, 10, 64)
		if err != nil {
			return fault.Invalid("%s is %q, which is not a time in seconds", name, text.Shorten(content, 30))
		}
		if outside(at) {
			return writeAnswer(r.Context(), w, http.StatusOK, samples)
		}
	}
	if stateOf(sb) == stateRunning {
		u, err := c.cfg.Sandboxes.Usage(r.Context(), sb.Info().ID)
		if err != nil {
			return err
		}
		samples = append(samples, sample{
			Timestamp: stamp(u.Time), TimestampUnix: u.Time.Unix(), CPUCount: u.CPUCount, CPUUsedPct: u.CPUPercent,
			MemUsed: u.MemoryBytes, MemTotal: u.MemoryLimit, DiskUsed: u.DiskBytes, DiskTotal: u.DiskLimit,
		})
	}
	return writeAnswer(r.Context(), w, http.StatusOK, samples)
}
