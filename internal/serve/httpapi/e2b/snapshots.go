package e2b

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// maxForks of one call.
const maxForks = 100

// snapshotInfo is a snapshot as clients see it.
type snapshotInfo struct {
	SnapshotID string   `json:"snapshotID"`
	Names      []string `json:"names"`
}

func viewSnapshot(s sandbox.Snapshot) snapshotInfo {
	view := snapshotInfo{SnapshotID: s.ID, Names: []string{}}
	for _, name := range s.Names() {
		view.Names = append(view.Names, nameOf(name).wholeName())
	}
	return view
}

// snapshotRoutes are about copies of sandboxes.
type snapshotRoutes struct{ *Control }

func (c snapshotRoutes) snapshot(w http.ResponseWriter, r *keyedRequest) error {
	sb, err := c.ownSandbox(r)
	if err != nil {
		return err
	}
	var body struct {
		Name   string `json:"name"`
		Memory *bool  `json:"memory"` // false: keep the files alone, without those in memory
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if err := checkSnapshotName(body.Name); err != nil {
		return err
	}
	contents := engine.ContentsMemory
	if body.Memory != nil && !*body.Memory {
		contents = engine.ContentsFiles
	}
	s, err := c.cfg.Sandboxes.Snapshot(r.Context(), sb.Info().ID, nameOf(body.Name).keptName(), contents)
	if err != nil {
		return err
	}
	return writeAnswer(r.Context(), w, http.StatusCreated, viewSnapshot(s))
}

// snapshotOf finds a snapshot of a token's by id, or by name and tag; nil: there is
// none.
func (c *Control) snapshotOf(ctx context.Context, t token.Token, ref string) (*sandbox.Snapshot, error) {
	own, err := c.snapshots(ctx, t)
	if err != nil {
		return nil, err
	}
	return findSnapshot(own, ref), nil
}

// findSnapshot finds one of an owner's, the newest first, by id, by name and tag, or by
// the id of a template that was built: that is its default tag, or without one its
// newest build.
func findSnapshot(own []sandbox.Snapshot, ref string) *sandbox.Snapshot {
	called := nameOf(ref)
	var newest *sandbox.Snapshot
	for _, s := range own {
		if s.ID == called.name && called.tag == "" || slices.Contains(s.Names(), called.keptName()) {
			return &s
		}
		if s.Built == nil || s.Built.Template != called.name || len(s.Names()) == 0 {
			continue
		}
		if slices.ContainsFunc(s.Names(), func(n string) bool { return nameOf(n).tag == called.tag }) {
			return &s
		}
		if newest == nil && !strings.Contains(ref, ":") {
			newest = &s
		}
	}
	return newest
}

// snapshots are a token's, the newest first.
func (c *Control) snapshots(ctx context.Context, t token.Token) ([]sandbox.Snapshot, error) {
	all, err := c.cfg.Sandboxes.Snapshots(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(s sandbox.Snapshot) bool { return s.Owner.Token != t.ID })
	slices.SortFunc(all, func(a, b sandbox.Snapshot) int { return cmp.Compare(snapshotKey(b), snapshotKey(a)) })
	return all, nil
}

func snapshotKey(s sandbox.Snapshot) string { return sortKey(s.Created, s.ID) }

func (c snapshotRoutes) listSnapshots(w http.ResponseWriter, r *keyedRequest) error {
	q := r.URL.Query()
	p, err := pageOf(q)
	if err != nil {
		return err
	}
	own, err := c.snapshots(r.Context(), r.token)
	if err != nil {
		return err
	}
	name, of := nameOf(q.Get("name")).name, q.Get("sandboxID")
	own = slices.DeleteFunc(own, func(s sandbox.Snapshot) bool {
		return s.Built != nil || of != "" && s.Of.ID != SandboxOf(of) || name != "" && nameOf(s.Name).name != name && s.ID != name
	})
	views := []snapshotInfo{}
	for _, s := range cutPage(w, p, own, snapshotKey, true) {
		views = append(views, viewSnapshot(s))
	}
	return writeAnswer(r.Context(), w, http.StatusOK, views)
}

// forked is one copy of a fork: one of the two.
type forked struct {
	Sandbox *createdSandbox `json:"sandbox,omitempty"`
	Error   *forkError      `json:"error,omitempty"`
}

type forkError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (c snapshotRoutes) serveFork(w http.ResponseWriter, r *keyedRequest) error {
	sb, err := c.ownSandbox(r)
	if err != nil {
		return err
	}
	var body struct {
		Count   *int   `json:"count"`
		Timeout *int64 `json:"timeout"` // seconds
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	count := 1
	if body.Count != nil {
		count = *body.Count
	}
	if count < 1 || count > maxForks {
		return fault.Invalid("count is %d; it may be from 1 to %d", count, maxForks)
	}
	life, err := c.timeout(body.Timeout, defaultTimeout2)
	if err != nil {
		return err
	}
	life.Then, life.Idle = sb.Lifetime().Then, sb.Lifetime().Idle
	like := c.created(sb.Info())
	if err := backend.Promise(r.Context(), count, forked{Sandbox: &like}); err != nil {
		return err
	}
	copies, err := c.cfg.Sandboxes.Fork(r.Context(), sb.Info().ID, count, life)
	if err != nil {
		return err
	}
	answers := make([]forked, 0, len(copies))
	for _, f := range copies {
		if f.Err != nil {
			answers = append(answers, forked{Error: &forkError{Code: fault.KindOf(f.Err).Status, Message: errorSentence(f.Err)}})
			continue
		}
		made := c.created(f.Sandbox.Info())
		answers = append(answers, forked{Sandbox: &made})
	}
	return writeAnswer(r.Context(), w, http.StatusCreated, answers)
}

// removeTemplate removes a snapshot, which clients call a template here, or all builds
// of a template of the caller's. Real templates are the host's.
func (c templateRoutes) removeTemplate(w http.ResponseWriter, r *keyedRequest) error {
	id := r.PathValue("id")
	if c.isTemplate(id) {
		return fault.New(fault.ErrForbidden, "the template %s is removed on the daemon's host: cofferdam template rm %s", id, id)
	}
	if t, err := c.findTemplate(r, id); err == nil && !strings.Contains(id, ":") {
		if err := c.removeBuilds(r, func(s sandbox.Snapshot) bool { return s.Built.Template == t.TemplateID }); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	s, err := c.snapshotOf(r.Context(), r.token, id)
	if err != nil {
		return err
	}
	if s == nil {
		return notFound("snapshot", id)
	}
	if err := c.cfg.Sandboxes.RemoveSnapshot(r.Context(), r.token.ID, s.ID); err != nil && !errors.Is(err, fault.ErrNotFound) {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
