package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/commands"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/journal"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/snapshots"
)

// Snapshot writes a copy of a running sandbox, which goes on, from which others can
// be made. Contents "" is memory. A newer snapshot of the same owner and name takes
// the name over. fault.ErrConflict for a sandbox that does not run, only weighs
// installs, or works on files of the host: these would be in no snapshot, and two
// copies would write to them. fault.ErrExhausted where there is no room.
func (m *Manager) Snapshot(ctx context.Context, id, name string, contents engine.Contents) (_ Snapshot, err error) {
	keep := Keep{Contents: contents}
	if name != "" {
		keep.Names = []string{name}
	}
	return m.Keep(ctx, id, keep)
}

// Keep is Snapshot with several names, or of a template's build.
func (m *Manager) Keep(ctx context.Context, id string, keep Keep) (_ Snapshot, err error) {
	ctx, done := m.observe(ctx, VerbSnapshot, id)
	defer func() { done(nil, "", err) }()
	s, err := m.Get(id)
	if err != nil {
		return Snapshot{}, err
	}
	if err := checkNames(keep.Names); err != nil {
		return Snapshot{}, err
	}
	if keep.Contents == "" {
		keep.Contents = engine.ContentsMemory
	}
	written, err := m.mayKeep(ctx, s)
	if err != nil {
		return Snapshot{}, err
	}
	defer written()
	draft, from, err := m.write(ctx, s, journal.NewID("snap", 8), keep.Contents, true)
	if err != nil {
		return Snapshot{}, err
	}
	from.Built = keep.Built
	snap, err := m.publish(ctx, draft, from, keep.Names)
	return snap, errors.Join(err, draft.Drop())
}

// mayKeep refuses another snapshot to an owner whose snapshots, with those that are
// being written, have as much of the disk as its sandboxes may have. done must be
// called when this one is in the store, or is not to be.
func (m *Manager) mayKeep(ctx context.Context, s *Sandbox) (done func(), err error) {
	owner := s.info.Owner
	if owner.Quota.DiskBytes == 0 || m.cfg.Snapshots == nil {
		return func() {}, nil
	}
	done, used, fits := m.drafts.take(owner.Token, m.imageSize(ctx, s), owner.Quota.DiskBytes, func() (kept int64) {
		for _, k := range m.cfg.Snapshots.List() {
			if k.Owner == owner.Token {
				kept += k.Bytes
			}
		}
		return kept
	})
	if !fits {
		return nil, fault.Exhausted(0, "with this one the token's snapshots would take about %d MiB, and its quota of disk is %d; remove some", used>>20, owner.Quota.DiskBytes>>20)
	}
	return done, nil
}

// write makes the image of a sandbox and says what is in it.
func (m *Manager) write(ctx context.Context, s *Sandbox, id string, contents engine.Contents, keep bool) (*snapshots.Draft, *origin, error) {
	body, err := m.mayCopy(ctx, s, contents)
	if err != nil {
		return nil, nil, err
	}
	// What it installed a moment ago is to be on record as what came in the copy. Should it
	// be frozen just now, the copy's own inventory tells.
	if err := s.commands.SettleEnded(ctx); err != nil && !errors.Is(err, commands.ErrStill) {
		return nil, nil, err
	}
	from := &origin{contents: contents, release: func() {}}
	from.Of, from.Owner = s.info, s.info.Owner
	if from.Made, err = m.loadMade(s.info.ID); err != nil {
		return nil, nil, err
	}
	store, err := m.store()
	if err != nil {
		return nil, nil, err
	}
	draft, err := store.Begin(id, m.imageSize(ctx, s), keep)
	if err != nil {
		return nil, nil, err
	}
	faultpoint.Hit(faultpoint.SnapshotBegun)
	from.image = draft.Image()
	if err := m.writeImage(ctx, s, body, from); err != nil {
		return nil, nil, errors.Join(err, draft.Drop())
	}
	faultpoint.Hit(faultpoint.SnapshotWritten)
	return draft, from, nil
}

func (m *Manager) store() (*snapshots.Store, error) {
	if m.cfg.Snapshots == nil {
		return nil, fault.New(fault.ErrUnavailable, "this daemon keeps no copies of sandboxes")
	}
	return m.cfg.Snapshots, nil
}

// mayCopy refuses sandboxes of which there can be no copy.
func (m *Manager) mayCopy(ctx context.Context, s *Sandbox, contents engine.Contents) (engine.Snapshotter, error) {
	id := s.info.ID
	if contents != engine.ContentsMemory && contents != engine.ContentsFiles {
		return nil, fault.Invalid("a snapshot has memory or files, not %.20q", contents)
	}
	if state, _ := s.State(); state != Running {
		return nil, fault.New(fault.ErrConflict, "the sandbox %s is %s; only of one that runs a copy can be made", id, state)
	}
	if s.info.Plan {
		return nil, fault.New(fault.ErrConflict, "the sandbox %s only weighs installs for a plan; there are no copies of it", id)
	}
	if len(s.info.WritableMounts) > 0 {
		return nil, fault.New(fault.ErrConflict, "the sandbox %s has the host's files mounted read-write (%s): they would be in no copy, and all copies would write to the same ones; make it without such mounts, and copy files in",
			id, s.info.WritableMounts[0])
	}
	body, ok := s.instance.(engine.Snapshotter)
	caps := engine.Capabilities{}
	if eng := m.cfg.Engines[s.info.Engine]; eng != nil {
		var err error
		if caps, err = eng.Capabilities(ctx); err != nil {
			return nil, err
		}
	}
	if !ok || !slices.Contains(caps.Enforces, engine.ControlSnapshot) {
		return nil, fault.New(fault.ErrUnavailable, "the engine %s can't copy sandboxes here%s", s.info.Engine, because(caps.Missing[engine.ControlSnapshot]))
	}
	return body, nil
}

// imageSize is about how large an image will be. What it takes beyond that is
// bounded by the reserve.
func (m *Manager) imageSize(ctx context.Context, s *Sandbox) int64 {
	stats, err := s.instance.Stats(ctx)
	if err != nil {
		return 0 // the free-space reserve and the size of what lies there still count
	}
	return stats.MemoryBytes
}

// writeImage has the engine write the image; the sandbox is not frozen meanwhile.
func (m *Manager) writeImage(ctx context.Context, s *Sandbox, body engine.Snapshotter, from *origin) error {
	var werr error
	err := s.waits.Steadily(ctx, func() {
		leave, err := m.snapshotting(ctx, s)
		if err != nil {
			werr = err
			return
		}
		defer leave()
		began := time.Now()
		if werr = body.Snapshot(ctx, from.image, from.contents); werr != nil {
			return
		}
		werr = m.describe(ctx, s, from, began)
	})
	return errors.Join(err, werr)
}

// describe says what came into an image that has just been written.
func (m *Manager) describe(ctx context.Context, s *Sandbox, from *origin, began time.Time) error {
	lineage, err := m.cfg.Door.Lineage(ctx, s.info.ID)
	if err != nil {
		return err
	}
	from.Ancestors, from.facts = lineage.Ancestors, lineage.Facts
	from.Narrowing = m.cfg.Door.Narrowing(s.info.ID)
	known, err := m.cfg.Keeper.Get(ctx, s.info.ID)
	if err != nil {
		return err
	}
	if from.contents == engine.ContentsMemory {
		from.Commands = commands.Running(known.Commands, began)
	}
	return nil
}

// publish makes a snapshot of a draft, on record before anybody can use it.
func (m *Manager) publish(ctx context.Context, draft *snapshots.Draft, from *origin, names []string) (Snapshot, error) {
	name, also := "", []string(nil)
	if len(names) > 0 {
		name, also = names[0], names[1:]
	}
	if err := attachFacts(draft, from.facts); err != nil {
		return Snapshot{}, err
	}
	body, err := json.Marshal(from.body)
	if err != nil {
		return Snapshot{}, err
	}
	manifest, digest, err := draft.Finish(snapshots.Manifest{
		Name: name, Owner: from.Owner.Token, Created: time.Now().UTC(), Contents: from.contents, Template: from.Of.Digest, Body: body,
	})
	if err != nil {
		return Snapshot{}, err
	}
	record, err := m.cfg.Door.SandboxSnapshotted(ctx, from.Of.ID, admission.Copy{
		Snapshot: manifest.ID, Name: strings.Join(names, " "), Digest: digest, Contents: string(manifest.Contents), Bytes: manifest.Bytes,
	})
	if err != nil {
		return Snapshot{}, err
	}
	if err := draft.Publish(manifest, record, also...); err != nil {
		return Snapshot{}, err
	}
	faultpoint.Hit(faultpoint.SnapshotPublished)
	return snapshotOf(snapshots.Snapshot{Manifest: manifest, Digest: digest, Name: name, Also: also})
}

// attachFacts keeps what clients have read. Where that is more than a snapshot
// takes it is left out: they read it again then.
func attachFacts(draft *snapshots.Draft, facts *ledger.Facts) error {
	if facts == nil || len(facts.Projects) == 0 {
		return nil
	}
	data, err := json.Marshal(facts)
	if err != nil || len(data) > mostFacts {
		return err
	}
	return draft.Attach(factsFile, data)
}

const mostFacts = 32 << 20 // bytes

func snapshotOf(k snapshots.Snapshot) (Snapshot, error) {
	var b body
	if err := json.Unmarshal(k.Body, &b); err != nil {
		return Snapshot{}, fault.Wrap(fault.ErrConflict, err, "the snapshot %s can't be read", k.ID)
	}
	return Snapshot{
		ID: k.ID, Name: k.Name, Digest: k.Digest, Contents: k.Contents, Created: k.Created, Bytes: k.Bytes,
		Owner: b.Owner, Of: b.Of, Compressed: k.Cold, Also: k.Also, Built: b.Built,
	}, nil
}

// Snapshots returns all of them, the oldest first.
func (m *Manager) Snapshots(context.Context) ([]Snapshot, error) {
	all := []Snapshot{}
	if m.cfg.Snapshots == nil {
		return all, nil
	}
	for _, k := range m.cfg.Snapshots.List() {
		snap, err := snapshotOf(k)
		if err != nil {
			m.cfg.Log.Error("a snapshot is not listed", "snapshot", k.ID, "err", err)
			continue
		}
		all = append(all, snap)
	}
	return all, nil
}

// RemoveSnapshot removes a snapshot by id or name, which is on record first; owner ""
// is the Unix socket's, which may remove all by id. fault.ErrConflict while a sandbox
// is being made from it.
func (m *Manager) RemoveSnapshot(ctx context.Context, owner, ref string) error {
	store, err := m.store()
	if err != nil {
		return err
	}
	going, err := store.Find(owner, ref)
	if err != nil {
		return err
	}
	if err := m.cfg.Door.SnapshotRemoved(ctx, owner, admission.Copy{
		Snapshot: going.ID, Name: going.Name, Digest: going.Digest, Contents: string(going.Contents), Bytes: going.Bytes,
	}); err != nil {
		return err
	}
	gone, err := store.Remove(owner, going.ID)
	if err != nil {
		return err
	}
	m.cfg.Log.Info("a snapshot was removed", "snapshot", gone.ID, "owner", owner)
	return nil
}
