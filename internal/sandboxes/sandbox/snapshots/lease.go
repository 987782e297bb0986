package snapshots

import (
	"context"
	"os"
	"path/filepath"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/image"
)

// Lease is a snapshot that can't be removed and whose image is plain.
type Lease struct {
	Snapshot
	store *Store
	once  sync.Once
}

// Lease finds a snapshot by id, or by name, and checks its manifest and its seal;
// the bytes of the image are the engine's to check. A cold one is decompressed
// first, which may take long, in the owner's turn. Release must be called.
func (s *Store) Lease(ctx context.Context, owner, ref string) (*Lease, error) {
	s.mu.Lock()
	k, err := s.findSnapshot(owner, ref)
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	k.readers++
	k.used = s.now()
	l := &Lease{Snapshot: k.viewSnapshot(), store: s}
	s.mu.Unlock()
	if err := s.makeReady(ctx, owner, k); err != nil {
		l.Release()
		return nil, err
	}
	return l, nil
}

func (s *Store) makeReady(ctx context.Context, owner string, k *keptSnapshot) error {
	if err := s.warmSnapshot(ctx, owner, k); err != nil {
		return err
	}
	dir := filepath.Join(s.dir, k.manifest.ID)
	m, digest, err := readManifest(dir)
	if err != nil {
		return err
	}
	if digest != k.digest {
		return fault.New(fault.ErrConflict, "the snapshot %s is damaged: its manifest is another than it was", m.ID)
	}
	seal, err := image.Digest(filepath.Join(dir, imageName))
	if err != nil {
		return fault.Wrap(fault.ErrConflict, err, "the snapshot %s is damaged: its image has no seal", m.ID)
	}
	if seal != m.Seal {
		return fault.New(fault.ErrConflict, "the snapshot %s is damaged: its image is not the one that was written", m.ID)
	}
	return nil
}

// Image is the directory of the engine's files.
func (l *Lease) Image() string { return filepath.Join(l.store.dir, l.ID, imageName) }

// Attachment returns an attachment as it was written; nil if there is none of
// that name.
func (l *Lease) Attachment(name string) ([]byte, error) {
	want, there := l.Attached[name]
	if !there {
		return nil, nil
	}
	data, err := readBounded(filepath.Join(l.store.dir, l.ID, name), maxAttachment)
	if err != nil && !os.IsNotExist(err) {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the snapshot %s can't be read", l.ID)
	}
	if err != nil || digestOf(data) != want {
		return nil, fault.New(fault.ErrConflict, "the snapshot %s is damaged: %s is not what was written", l.ID, name)
	}
	return data, nil
}

// Release ends the lease; of nil it does nothing. Idempotent.
func (l *Lease) Release() {
	if l == nil {
		return
	}
	l.once.Do(func() {
		l.store.mu.Lock()
		defer l.store.mu.Unlock()
		if k := l.store.known[l.ID]; k != nil {
			k.readers--
			k.used = l.store.now()
		}
	})
}
