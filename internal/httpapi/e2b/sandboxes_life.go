package e2b

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
)

func (c *Control) info(w http.ResponseWriter, r *client) error {
	sb, err := c.ours(r)
	if err != nil {
		return err
	}
	writeObject(w, http.StatusOK, c.detail(sb))
	return nil
}

func (c *Control) kill(w http.ResponseWriter, r *client) error {
	sb, err := c.ours(r)
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
func (c *Control) setTimeout(w http.ResponseWriter, r *client) error {
	sb, err := c.ours(r)
	if err != nil {
		return err
	}
	var body lifeBody
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if body.Timeout == nil {
		return fault.Invalid("timeout is missing: a number of seconds")
	}
	life, err := c.timeout(body.Timeout, 0)
	if err != nil {
		return err
	}
	if err := c.live(r, sb, life.TTL); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// refresh moves a sandbox's end away, never nearer.
func (c *Control) refresh(w http.ResponseWriter, r *client) error {
	sb, err := c.ours(r)
	if err != nil {
		return err
	}
	var body lifeBody
	if err := readJSON(r, &body); err != nil {
		return err
	}
	life, err := c.timeout(body.Duration, defaultTimeout1)
	if err != nil {
		return err
	}
	if err := c.prolong(r, sb, life.TTL); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// live sets a sandbox's end. What becomes of it then stays as it was asked for.
func (c *Control) live(r *client, sb *sandbox.Sandbox, ttl time.Duration) error {
	life := sb.Lifetime()
	life.TTL = ttl
	return c.cfg.Sandboxes.SetLifetime(r.Context(), sb.Info().ID, life)
}

func (c *Control) prolong(r *client, sb *sandbox.Sandbox, ttl time.Duration) error {
	if ends := sb.Ends(); ends.IsZero() || !time.Now().Add(ttl).After(ends) {
		return nil
	}
	return c.live(r, sb, ttl)
}

// connectBody is the body of a connect or resume.
type connectBody struct {
	Timeout   *int64 `json:"timeout"`   // seconds
	Memory    *bool  `json:"memory"`    // false: start from the files alone
	AutoPause *bool  `json:"autoPause"` // of the first version; ours is settled when a sandbox is made
}

func (c *Control) connectRequest(r *client) (*sandbox.Sandbox, time.Duration, error) {
	sb, err := c.ours(r)
	if err != nil {
		return nil, 0, err
	}
	var body connectBody
	if err := readJSON(r, &body); err != nil {
		return nil, 0, err
	}
	if body.Memory != nil && !*body.Memory && stateOf(sb) == statePaused {
		return nil, 0, fault.Invalid("memory: a paused sandbox goes on with its memory here, and can't be started from its files alone; snapshot it while it runs")
	}
	life, err := c.timeout(body.Timeout, defaultTimeout2)
	return sb, life.TTL, err
}

// connect gives a client what it needs to use a sandbox, and wakes one that is
// paused. One that waits for a person stays where it is: the answer says for what.
func (c *Control) connect(w http.ResponseWriter, r *client) error {
	sb, ttl, err := c.connectRequest(r)
	if err != nil {
		return err
	}
	id := sb.Info().ID
	resumed, err := c.cfg.Sandboxes.Resume(r.Context(), id)
	if err != nil {
		return err
	}
	status, set := http.StatusOK, c.prolong
	if resumed {
		status, set = http.StatusCreated, c.live
	}
	if err := set(r, sb, ttl); err != nil {
		return err
	}
	c.cfg.Sandboxes.Touch(id)
	writeObject(w, status, c.created(sb.Info()))
	return nil
}

// resume is the first version's: a sandbox that runs is a conflict.
func (c *Control) resume(w http.ResponseWriter, r *client) error {
	sb, ttl, err := c.connectRequest(r)
	if err != nil {
		return err
	}
	id := sb.Info().ID
	resumed, err := c.cfg.Sandboxes.Resume(r.Context(), id)
	if err != nil {
		return err
	}
	if !resumed {
		return fault.New(fault.ErrConflict, "the sandbox %s runs already", id)
	}
	if err := c.live(r, sb, ttl); err != nil {
		return err
	}
	writeObject(w, http.StatusCreated, c.created(sb.Info()))
	return nil
}

// pauseBody is the body of a pause.
type pauseBody struct {
	Memory *bool `json:"memory"` // false: keep the files alone
}

// pause answers 409 only for a sandbox that is on disk already: clients take that
// for a success.
func (c *Control) pause(w http.ResponseWriter, r *client) error {
	sb, err := c.ours(r)
	if err != nil {
		return err
	}
	var body pauseBody
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if body.Memory != nil && !*body.Memory {
		return fault.Invalid("memory: a pause always keeps memory here; leave keepMemory out")
	}
	id := sb.Info().ID
	if state, _ := sb.State(); state == sandbox.Paused {
		return fault.New(fault.ErrConflict, "the sandbox %s is paused already", id)
	}
	err = c.cfg.Sandboxes.Pause(r.Context(), id)
	if errors.Is(err, fault.ErrConflict) && stateOf(sb) != statePaused {
		err = fault.New(fault.ErrUnavailable, "%s", sentence(err))
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
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
func (c *Control) metrics(w http.ResponseWriter, r *client) error {
	sb, err := c.ours(r)
	if err != nil {
		return err
	}
	now := time.Now().Unix()
	samples := []sample{}
	for name, outside := range map[string]func(int64) bool{
		"start": func(at int64) bool { return at > now }, "end": func(at int64) bool { return at < now-1 },
	} {
		text := r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		at, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fault.Invalid("%s is %q, which is no time in seconds", name, clip(text, 30))
		}
		if outside(at) {
			writeObject(w, http.StatusOK, samples)
			return nil
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
	writeObject(w, http.StatusOK, samples)
	return nil
}
