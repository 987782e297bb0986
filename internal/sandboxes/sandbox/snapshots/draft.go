package snapshots

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/image"
)

// Draft is a snapshot that is being made, or an image that is thrown away after use. Its maker alone uses it.
type Draft struct {
	store    *Store
	id       string
	dir      string
	attached map[string]string
	over     bool // published or dropped
}

// Begin makes a draft under an id that no other has, and takes room of its owner's for about so
// many bytes. keep tells that it is to be published: otherwise it counts as no
// snapshot.
func (s *Store) Begin(owner, id string, about int64, keep bool) (*Draft, error) {
	if !validID(id) {
		return nil, fault.Invalid("%q can't be a snapshot's id", id)
	}
	if err := s.checkDisk(about); err != nil {
		return nil, err
	}
	s.mu.Lock()
	err := s.checkRoom(owner, about, keep)
	_, taken := s.known[id]
	_, begun := s.drafts[id]
	if taken || begun {
		err = fault.New(fault.ErrConflict, "there is a snapshot %s already", id)
	}
	if err == nil {
		s.drafts[id] = drafted{owner, about}
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	d := &Draft{store: s, id: id, dir: filepath.Join(s.dir, newPrefix+id), attached: map[string]string{}}
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		s.forgetDraft(id)
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the snapshot %s can't be begun", id)
	}
	return d, nil
}

func validID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// ID is the snapshot's.
func (d *Draft) ID() string { return d.id }

// Image is where the engine writes to. It does not exist yet.
func (d *Draft) Image() string { return filepath.Join(d.dir, imageName) }

// Attach adds a small file; its name must end in .json and be none of the
// store's own.
func (d *Draft) Attach(name string, data []byte) error {
	if filepath.Base(name) != name || filepath.Ext(name) != ".json" || name == manifestName || name == stateName || strings.HasPrefix(name, ".") {
		return fault.Invalid("%q can't be an attachment's name", name)
	}
	if len(data) > maxAttachment {
		return fault.Invalid("the attachment %s is %d bytes long; at most %d", name, len(data), maxAttachment)
	}
	d.attached[name] = digestOf(data)
	return writeSynced(filepath.Join(d.dir, name), data)
}

// Finish brings all but the manifest to the disk, and returns the manifest with
// what the store knows of it, and its digest.
func (d *Draft) Finish(m Manifest) (Manifest, string, error) {
	seal, err := image.Digest(d.Image())
	if err != nil {
		return m, "", err
	}
	if err := syncFiles(d.Image()); err != nil {
		return m, "", fault.Wrap(fault.ErrUnavailable, err, "the snapshot %s can't be brought to the disk", d.id)
	}
	m.ID, m.Seal, m.Attached, m.Bytes = d.id, seal, d.attached, diskUse(d.Image())
	_, digest, err := m.sealManifest()
	return m, digest, err
}

// Publish makes a snapshot of the draft: whole, or not at all. record is the
// number of its record in the log, also are names that it has beside the manifest's.
// Older snapshots of the same owner lose these names. On an error the draft is still
// there.
func (d *Draft) Publish(m Manifest, record uint64, also ...string) error {
	file, digest, err := m.sealManifest()
	if err != nil {
		return err
	}
	if len(file) > maxManifest {
		return fault.Invalid("the manifest of snapshot %s is %d bytes long; at most %d", d.id, len(file), maxManifest)
	}
	state := mutable{Record: record, Also: also}
	if err := errors.Join(
		writeState(d.dir, state),
		writeSynced(filepath.Join(d.dir, manifestName), file),
		atomicfile.SyncDir(d.dir),
	); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the snapshot %s can't be written", d.id)
	}
	faultpoint.Hit(faultpoint.SnapshotSealed)
	s := d.store
	if err := os.Rename(d.dir, filepath.Join(s.dir, d.id)); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the snapshot %s can't be published", d.id)
	}
	d.over = true
	err = atomicfile.SyncDir(s.dir)
	disk := diskUse(filepath.Join(s.dir, d.id)) // nobody waits for that
	defer s.takeTurn(m.Owner)()
	s.mu.Lock()
	delete(s.drafts, d.id)
	k := &keptSnapshot{manifest: m, digest: digest, state: state, disk: disk, used: s.now()}
	s.known[d.id] = k
	lost := s.takeNames(k, k.listNames())
	s.mu.Unlock()
	s.writeLost(lost)
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "it is not known whether the snapshot %s survives a loss of power", d.id)
	}
	return nil
}

// Drop removes the draft, unless it has been published.
func (d *Draft) Drop() error {
	if d.over {
		return nil
	}
	d.over = true
	err := os.RemoveAll(d.dir)
	d.store.forgetDraft(d.id)
	return err
}

func (s *Store) forgetDraft(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.drafts, id)
}
