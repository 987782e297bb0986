package templatebuild

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// file is a build on the disk: the build, and its log once it has ended.
type file struct {
	Build

	Entries []Entry `json:"entries,omitempty"`
}

func sortUploads(all []upload) {
	slices.SortFunc(all, func(a, b upload) int { return a.used.Compare(b.used) })
}

func (b *Builder) buildPath(id string) string { return filepath.Join(b.cfg.Dir, "records", id+".json") }

// writeBuild keeps a build, in one step.
func (b *Builder) writeBuild(f file) error {
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	fresh, err := os.CreateTemp(filepath.Join(b.cfg.Dir, "records"), ".new-*")
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the build can't be kept")
	}
	_, werr := fresh.Write(data)
	err = errors.Join(werr, fresh.Sync(), fresh.Close())
	if err == nil {
		err = os.Rename(fresh.Name(), b.buildPath(f.ID))
	}
	if err != nil {
		_ = os.Remove(fresh.Name())
		return fault.Wrap(fault.ErrUnavailable, err, "the build can't be kept")
	}
	return nil
}

func (b *Builder) readBuild(id string) (file, error) {
	var f file
	data, err := os.ReadFile(b.buildPath(id))
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	return f, err
}

// readEntries reads a page of the log of a build that has ended; the rest of the log is never in memory.
func (b *Builder) readEntries(id string, offset, most int) ([]Entry, error) {
	record, err := os.Open(b.buildPath(id))
	if err != nil {
		return nil, err
	}
	defer record.Close()
	entries := []Entry{}
	d := json.NewDecoder(record)
	if _, err := d.Token(); err != nil { // the object begins
		return nil, err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		if name != "entries" {
			if err := d.Decode(&json.RawMessage{}); err != nil {
				return nil, err
			}
			continue
		}
		if _, err := d.Token(); err != nil { // the list begins
			return nil, err
		}
		for at := 0; d.More() && len(entries) < most; at++ {
			var e Entry
			if err := d.Decode(&e); err != nil {
				return nil, err
			}
			if at >= offset {
				entries = append(entries, e)
			}
		}
		break // nothing that is wanted comes behind
	}
	return entries, nil
}

// loadBuilds learns of the builds of earlier daemons. One that had not ended has ended now.
func (b *Builder) loadBuilds() error {
	dir := filepath.Join(b.cfg.Dir, "records")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the folder of builds can't be made")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the builds can't be listed")
	}
	for _, e := range entries {
		id, whole := strings.CutSuffix(e.Name(), ".json")
		if !whole {
			_ = os.Remove(filepath.Join(dir, e.Name())) // half a record
			continue
		}
		f, err := b.readBuild(id)
		if err != nil || f.ID != id {
			b.cfg.Log.Error("a build can't be read", "build", id, "err", err)
			continue
		}
		if !f.hasEnded() {
			err := b.orphan(&f)
			if err == nil { // else the next daemon tries again
				err = b.writeBuild(f)
			}
			if err != nil {
				return err
			}
		}
		b.builds[id] = &going{Build: f.Build}
	}
	return nil
}

// orphan ends a build whose daemon is gone. Its result may have been there already: then that is on record
// before the build is told as ready, and its template is used. That daemon may have recorded it, too: no build has
// two ends in the log.
func (b *Builder) orphan(f *file) error {
	f.Ended = time.Now().UTC()
	if all, err := b.cfg.Sandboxes.Snapshots(b.ctx); err == nil {
		for _, s := range all {
			if s.Built != nil && s.Built.Build == f.ID && s.Owner.Token == f.Owner {
				f.Status, f.Snapshot = Ready, s.ID
				if owed, err := b.cfg.Owed(b.ctx, f.ID); err != nil || !owed {
					return err
				}
				return b.cfg.Recorder.RecordBuild(b.ctx, "", admission.Build{ID: f.ID, Template: f.Name, Token: f.Owner, Stage: admission.BuildReady, Snapshot: s.ID})
			}
		}
	}
	f.Status, f.Step, f.Reason = Failed, StepFinalize, "the daemon ended while the template was built; nothing of it is left, build it again"
	return nil
}

// pruneBuilds takes out what is old, and of each owner what is too much, whose files forget removes. It needs mu.
func (b *Builder) pruneBuilds() (gone []string) {
	now := time.Now()
	all := make([]*going, 0, len(b.builds))
	for _, g := range b.builds {
		all = append(all, g)
	}
	slices.SortFunc(all, func(x, y *going) int { return cmp.Or(y.Created.Compare(x.Created), strings.Compare(x.ID, y.ID)) })
	kept := map[string]int{}
	for _, g := range all {
		late := g.Status == Waiting && !g.queued && now.Sub(g.Created) > waitingFor
		if !late {
			if !g.hasEnded() {
				continue
			}
			if kept[g.Owner]++; kept[g.Owner] <= keptEach && now.Sub(g.Ended) <= keptFor {
				continue
			}
		}
		delete(b.builds, g.ID)
		gone = append(gone, g.ID)
	}
	return gone
}

// forgetBuilds removes the files of builds that were taken out. It must not have mu: what a disk takes is nobody's
// to wait for who only asks how a build stands.
func (b *Builder) forgetBuilds(ids []string) {
	for _, id := range ids {
		if err := os.Remove(b.buildPath(id)); err != nil {
			b.cfg.Log.Warn("an old build can't be forgotten", "build", id, "err", err)
		}
	}
}
