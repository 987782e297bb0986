package httpapi

import (
	"net/http"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// maxForks bounds the copies of one request.
const maxForks = 100

func (s sandboxRoutes) pauseSandbox(w http.ResponseWriter, r *http.Request) error {
	sb, err := s.ownSandbox(r)
	if err != nil {
		return err
	}
	if err := backend.Promise(r.Context(), 1, s.viewSandbox(sb, nil)); err != nil {
		return err
	}
	if err := s.cfg.Sandboxes.Pause(r.Context(), sb.Info().ID); err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, s.viewSandbox(sb, nil))
}

// resumeSandbox answers with the sandbox whether or not it was paused: what the
// caller wants is that it runs.
func (s sandboxRoutes) resumeSandbox(w http.ResponseWriter, r *http.Request) error {
	sb, err := s.ownSandbox(r)
	if err != nil {
		return err
	}
	if err := backend.Promise(r.Context(), 1, s.viewSandbox(sb, nil)); err != nil {
		return err
	}
	if _, err := s.cfg.Sandboxes.Resume(r.Context(), sb.Info().ID); err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, s.viewSandbox(sb, nil))
}

func (s sandboxRoutes) setLifetime(w http.ResponseWriter, r *http.Request) error {
	sb, err := s.ownSandbox(r)
	if err != nil {
		return err
	}
	var body api.Lifetime
	if err := readJSON(r, &body); err != nil {
		return err
	}
	l, err := lifetime(body)
	if err != nil {
		return err
	}
	if err := backend.Promise(r.Context(), 1, s.viewSandbox(sb, nil)); err != nil {
		return err
	}
	if err := s.cfg.Sandboxes.SetLifetime(r.Context(), sb.Info().ID, l); err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, s.viewSandbox(sb, nil))
}

func (s sandboxRoutes) serveUsage(w http.ResponseWriter, r *http.Request) error {
	sb, err := s.ownSandbox(r)
	if err != nil {
		return err
	}
	usage, err := s.cfg.Sandboxes.Usage(r.Context(), sb.Info().ID)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, api.Usage(usage))
}

func (s snapshotRoutes) makeSnapshot(w http.ResponseWriter, r *http.Request) error {
	var body api.MakeSnapshot
	if err := readJSON(r, &body); err != nil { // before it waits: the server sees that a client is gone once all is read
		return err
	}
	sb, err := s.ownAwake(r)
	if err != nil {
		return err
	}
	if body.Name != "" && !plainName(body.Name) {
		return fault.Invalid("invalid snapshot name %.60q: use up to %d letters, digits, dots, dashes and underscores, starting with a letter or digit", body.Name, maxName)
	}
	contents := engine.Contents(body.Contents)
	switch contents {
	case "":
		contents = engine.ContentsMemory
	case engine.ContentsMemory, engine.ContentsFiles:
	default:
		return fault.Invalid("contents is %.40q; it is memory or files", body.Contents)
	}
	made, err := s.cfg.Sandboxes.Snapshot(r.Context(), sb.Info().ID, body.Name, contents)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusCreated, viewSnapshot(made))
}

func (s snapshotRoutes) forkSandbox(w http.ResponseWriter, r *http.Request) error {
	var body api.ForkSandbox
	if err := readJSON(r, &body); err != nil { // before it waits: the server sees that a client is gone once all is read
		return err
	}
	sb, err := s.ownAwake(r)
	if err != nil {
		return err
	}
	if body.Count < 0 || body.Count > maxForks {
		return fault.Invalid("count is %d; a fork makes from 1 to %d copies", body.Count, maxForks)
	}
	l, err := lifetime(body.Lifetime)
	if err != nil {
		return err
	}
	if asked := l.Lease; body.Lifetime == (api.Lifetime{LeaseSeconds: body.Lifetime.LeaseSeconds}) {
		l = sb.Lifetime()
		l.Lease = asked // without one Fork gives a copy its source's, and time for somebody to come
	}
	count, like := max(body.Count, 1), s.viewSandbox(sb, nil)
	if err := backend.Promise(r.Context(), count, api.Fork{Sandbox: &like}); err != nil {
		return err
	}
	forked, err := s.cfg.Sandboxes.Fork(r.Context(), sb.Info().ID, count, l)
	if err != nil {
		return err
	}
	answer := api.Forks{Forks: make([]api.Fork, 0, len(forked))}
	for _, f := range forked {
		answer.Forks = append(answer.Forks, s.viewFork(f, whoseIs(r)))
	}
	return writeJSON(w, r, http.StatusCreated, answer)
}

func (d *desk) viewFork(f backend.Forked, by *caller) api.Fork {
	if f.Err != nil {
		problem := problemOf(f.Err, statusOf(f.Err), by)
		return api.Fork{Error: &problem}
	}
	made := d.viewSandbox(f.Sandbox, nil)
	return api.Fork{Sandbox: &made}
}
