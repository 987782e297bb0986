package copies

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// A name directly in a mount that can be written may have another mount over it: a read-only one of itself, or
// another path of the host. While a sandbox runs, such a cover holds as long as what it lies over has its name: see
// hostpath.Tree.Cover. What the record has of a sandbox's trees therefore changes when the sandbox stops to run.

// Writable are the directories of the host in which the sandboxes may write that have a
// blueprint, those that live and those that are paused, and in which others could before.
func (s *Blueprints) Writable() []hostpath.Tree {
	var all []hostpath.Tree
	if s.record != nil {
		all = s.record.Trees()
	}
	seen := map[hostpath.Tree]bool{}
	for _, t := range all {
		seen[t] = true
	}
	for _, t := range s.living("") {
		if !seen[t] {
			all = append(all, t)
		}
	}
	return all
}

// living are the trees of all sandboxes but one, each once.
func (s *Blueprints) living(but string) (all []hostpath.Tree) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[hostpath.Tree]bool{}
	for id, trees := range s.writable {
		for _, t := range trees {
			if id != but && !seen[t] {
				all, seen[t] = append(all, t), true
			}
		}
	}
	return all
}

// keepWritable has the record know what a sandbox may write of the host, before it does. A maker of
// a sandbox also has on record what others are not kept from any more.
func (s *Blueprints) keepWritable(id string, b Blueprint) error {
	trees := b.writable()
	s.recording.Lock()
	defer s.recording.Unlock()
	if s.record != nil {
		if err := s.record.Add(append(s.uncovered(), trees...)); err != nil {
			return err
		}
	}
	s.noteTrees(id, trees)
	return nil
}

func (s *Blueprints) noteTrees(id string, trees []hostpath.Tree) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(trees) > 0 {
		s.writable[id] = trees
	}
}

// uncovered are trees of living sandboxes in which a cover has gone, as they are without it. Needs s.recording.
func (s *Blueprints) uncovered() (all []hostpath.Tree) {
	for _, t := range s.living("") {
		if t.Lost() {
			all = append(all, t.Settled())
		}
	}
	return all
}

// settleSandbox has the record know what a sandbox could write of the host that runs no more.
func (s *Blueprints) settleSandbox(id string) {
	s.recording.Lock()
	defer s.recording.Unlock()
	s.mu.Lock()
	trees := s.writable[id]
	s.mu.Unlock()
	if err := s.settleTrees(trees, s.living(id)); err != nil {
		// A covered name counts only as long as it is the same, as if the sandbox ran.
		s.log.Warn("what a sandbox could write that runs no more can't be kept", "sandbox", id, "err", err)
		return
	}
	var settled []hostpath.Tree
	for _, t := range trees {
		settled = append(settled, t.Settled())
	}
	s.noteTrees(id, settled)
}

// settleTrees replaces trees in the record by what they are once nobody writes in them, unless
// others still do. A tree that is lost is lost for all. Needs s.recording.
func (s *Blueprints) settleTrees(trees, others []hostpath.Tree) error {
	var was, now []hostpath.Tree
	for _, t := range trees {
		if t.Marks == "" || s.record == nil {
			continue
		}
		if !t.Lost() && slices.Contains(others, t) {
			continue // whoever runs last settles it
		}
		was, now = append(was, t), append(now, t.Settled())
	}
	if len(was) == 0 {
		return nil
	}
	return s.record.Replace(was, now)
}

// settleUnowned settles what the record has of sandboxes that a daemon before did not see end.
func (s *Blueprints) settleUnowned() {
	if s.record == nil {
		return
	}
	s.recording.Lock()
	defer s.recording.Unlock()
	living := s.living("")
	unowned := slices.DeleteFunc(s.record.Trees(), func(t hostpath.Tree) bool { return slices.Contains(living, t) })
	if err := s.settleTrees(unowned, nil); err != nil {
		s.log.Warn("what sandboxes could write that run no more can't be kept", "err", err)
	}
}

// stopped notes that nothing of a sandbox runs, and that it is to go on: until then nobody inside writes anywhere.
func (s *Blueprints) stopped(id string) {
	b, err := s.Load(id)
	if err != nil || !b.marked() {
		return // an older version made it; or it has no covers
	}
	s.settleSandbox(id)
	for i, m := range b.Spec.Mounts {
		if m.Covers != "" {
			b.Spec.Mounts[i].Covers = hostpath.AnyMark
		}
	}
	if err := s.writeBlueprint(id, b); err != nil {
		s.log.Warn("that a sandbox runs no more can't be kept", "sandbox", id, "err", err)
	}
}

// begins notes what the covers of a sandbox lie over that is to go on after stopped, and has the record know it
// again: it was settled, also where stopped could not note that, and then counts what was there before.
func (s *Blueprints) begins(id string) error {
	b, err := s.Load(id)
	if errors.Is(err, fault.ErrConflict) {
		return nil // an older version made it, which the engine looks after
	}
	if err != nil {
		return err
	}
	found := b.remark()
	if !b.marked() {
		return nil // it has no covers
	}
	if err := s.keepWritable(id, b); err != nil || !found {
		return err
	}
	return s.writeBlueprint(id, b)
}

// remark finds anew what covers lie over that are to be laid anew; false: there are none.
func (b Blueprint) remark() (found bool) {
	for i, cover := range b.Spec.Mounts {
		if cover.Covers != hostpath.AnyMark {
			continue
		}
		found, b.Spec.Mounts[i].Covers = true, hostpath.GoneMark // the engine says that there is no place for it
		for _, m := range b.Spec.Mounts {
			if m.Source != "" && !m.ReadOnly && filepath.Dir(cover.Destination) == m.Destination {
				b.Spec.Mounts[i].Covers = hostpath.MarkAt(filepath.Join(m.Source, filepath.Base(cover.Destination)))
			}
		}
	}
	return found
}

// Following is a sandbox that can be frozen, and tells when it stops to run and when it goes on.
func (s *Blueprints) Following(id string, body Freezable) Freezable {
	return &following{Freezable: body, kept: s, id: id}
}

// Freezable is what engine.Freezer has of that.
type Freezable interface {
	Freeze(ctx context.Context, dir string) error
	FreezeFiles(ctx context.Context, dir string) error
	Thaw(ctx context.Context, dir string) error
}

type following struct {
	Freezable
	kept *Blueprints
	id   string
}

// Freeze implements Freezable.
func (f *following) Freeze(ctx context.Context, dir string) error {
	return f.frozeError(f.Freezable.Freeze(ctx, dir))
}

// FreezeFiles implements Freezable.
func (f *following) FreezeFiles(ctx context.Context, dir string) error {
	return f.frozeError(f.Freezable.FreezeFiles(ctx, dir))
}

func (f *following) frozeError(err error) error {
	if err == nil {
		f.kept.stopped(f.id)
	}
	return err
}

// Thaw implements Freezable.
func (f *following) Thaw(ctx context.Context, dir string) error {
	if err := f.kept.begins(f.id); err != nil {
		return err
	}
	return f.Freezable.Thaw(ctx, dir)
}

// marked tells whether it is known of any mount what it lies over.
func (b Blueprint) marked() bool {
	return slices.ContainsFunc(b.Spec.Mounts, func(m engine.Mount) bool { return m.Covers != "" && m.Covers != hostpath.AnyMark })
}

// writable is what a sandbox may write of the host.
func (b Blueprint) writable() []hostpath.Tree {
	var trees []hostpath.Tree
	for _, m := range b.Spec.Mounts {
		if m.Source != "" && !m.ReadOnly {
			trees = append(trees, hostpath.Tree{Path: m.Source, ID: m.Origin}.Cover(b.covered(m)))
		}
	}
	return trees
}

// covered are the names directly in a mount which lie under a read-only mount of themselves, or under another
// path of the host, each with the mark of what it is. Nobody inside can rename such a name, since
// something is mounted there, nor change anything below it.
func (b Blueprint) covered(m engine.Mount) map[string]hostpath.Mark {
	names := map[string]hostpath.Mark{}
	for at, cover := range b.Spec.Mounts {
		name := filepath.Base(cover.Destination)
		if cover.Source == "" || cover.Destination != filepath.Join(m.Destination, name) {
			continue
		}
		of := filepath.Join(m.Source, name)
		// A file that another path covers is not shown at all; older versions did not say what it was.
		other := cover.Covers != "" && cover.Source != of && !strings.HasPrefix(cover.Source, of+"/")
		if !other && (cover.Source != of || !cover.ReadOnly) {
			continue
		}
		// A later mount there, or below it, is what is seen.
		if !slices.ContainsFunc(b.Spec.Mounts[at+1:], func(later engine.Mount) bool {
			return later.Source != "" && !later.ReadOnly && (later.Destination == cover.Destination || strings.HasPrefix(later.Destination, cover.Destination+"/"))
		}) {
			names[name] = cover.Covers
		}
	}
	return names
}
