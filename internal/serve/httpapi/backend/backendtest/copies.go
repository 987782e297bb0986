package backendtest

import (
	"context"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// Snapshot implements backend.Sandboxes.
func (l *Life) Snapshot(ctx context.Context, id, name string, contents engine.Contents) (sandbox.Snapshot, error) {
	keep := sandbox.Keep{Contents: contents}
	if name != "" {
		keep.Names = []string{name}
	}
	return l.Keep(ctx, id, keep)
}

// Keep implements the builder's Sandboxes.
func (l *Life) Keep(_ context.Context, id string, keep sandbox.Keep) (sandbox.Snapshot, error) {
	box, err := l.running(id)
	if err != nil {
		return sandbox.Snapshot{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	info := box.Info()
	s := sandbox.Snapshot{
		ID: newTestID("snap"), Digest: "sha256:" + newTestID(""), Contents: keep.Contents, Created: time.Now().UTC(), Owner: info.Owner, Of: info, Built: keep.Built,
	}
	l.unname(info.Owner.Token, keep.Names)
	if len(keep.Names) > 0 {
		s.Name, s.Also = keep.Names[0], slices.Clone(keep.Names[1:])
	}
	l.snapshots = append(l.snapshots, s)
	return s, nil
}

// unname takes names from an owner's snapshots. It needs mu.
func (l *Life) unname(owner string, names []string) {
	for i, s := range l.snapshots {
		if s.Owner.Token != owner {
			continue
		}
		if slices.Contains(names, s.Name) {
			l.snapshots[i].Name = ""
		}
		l.snapshots[i].Also = slices.DeleteFunc(slices.Clone(s.Also), func(n string) bool { return slices.Contains(names, n) })
	}
}

// NameSnapshot implements the E2B wire's Sandboxes.
func (l *Life) NameSnapshot(_ context.Context, owner, id string, names []string) (sandbox.Snapshot, error) {
	return l.rename(owner, id, names, names)
}

// UnnameSnapshot implements the E2B wire's Sandboxes.
func (l *Life) UnnameSnapshot(_ context.Context, owner, id string, names []string) (sandbox.Snapshot, error) {
	return l.rename(owner, id, names, nil)
}

func (l *Life) rename(owner, id string, taken, given []string) (sandbox.Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range l.snapshots {
		if s.ID == id && s.Owner.Token == owner {
			if given == nil { // only of this one
				other := slices.Clone(l.snapshots)
				l.unname(owner, taken)
				now := l.snapshots[i]
				copy(l.snapshots, other)
				l.snapshots[i] = now
				return now, nil
			}
			l.unname(owner, taken)
			l.snapshots[i].Also = append(slices.Clone(l.snapshots[i].Also), given...)
			return l.snapshots[i], nil
		}
	}
	return sandbox.Snapshot{}, fault.New(fault.ErrNotFound, "there is no snapshot %q", id)
}

// Snapshots implements backend.Sandboxes.
func (l *Life) Snapshots(context.Context) ([]sandbox.Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.snapshots), nil
}

// RemoveSnapshot implements backend.Sandboxes.
func (l *Life) RemoveSnapshot(_ context.Context, owner, ref string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.snapshots)
	l.snapshots = slices.DeleteFunc(l.snapshots, func(s sandbox.Snapshot) bool {
		return s.Owner.Token == owner && (s.ID == ref || s.Name != "" && s.Name == ref)
	})
	if len(l.snapshots) == before {
		return fault.New(fault.ErrNotFound, "there is no snapshot %q", ref)
	}
	return nil
}

// Fork implements backend.Sandboxes: each copy counts against its owner's quota.
func (l *Life) Fork(_ context.Context, id string, count int, life sandbox.Lifetime) ([]sandbox.Forked, error) {
	box, err := l.running(id)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	info := box.Info()
	copies := make([]sandbox.Forked, count)
	for i := range copies {
		if copies[i].Err = l.checkQuota(info.Owner); copies[i].Err != nil {
			continue
		}
		made, err := l.makeBox(sandbox.Request{
			Template: info.Template, Labels: info.Labels, Owner: info.Owner, Lifetime: life, User: info.User, Narrowing: l.narrowed[id],
		}, id)
		if err != nil {
			return nil, err
		}
		copies[i].Sandbox = made.Sandbox
	}
	return copies, nil
}
